/**
 * A read as a handler wants it: the value, or its refusal thrown.
 */
import type { Read } from '../authority/task-reader.js';
import { RefusalError } from '../wire/refusal-error.js';

export function valueOf<Value>(read: Read<Value>): Value {
  if (read.ok) return read.value;
  throw new RefusalError(read.refusal);
}
