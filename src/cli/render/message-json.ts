/**
 * Proto messages as JSON for machines: the standard JSON form with the field names of the proto files (`task_id`), so
 * that one name serves everywhere. int64 is text, as that form has it.
 */
import { type DescMessage, type MessageShape, toJsonString } from '@bufbuild/protobuf';

/** One line. */
export function messageJson<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return toJsonString(schema, message, { useProtoFieldName: true });
}

/** JSON text on one line: a line break in it can only be white space between tokens. Text that is no JSON is quoted. */
export function compactJson(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(text);
  }
}
