/**
 * Proto messages as JSON for machines: the standard JSON form with the field names of the proto files (`task_id`), so
 * that one name serves everywhere. int64 is text, as that form has it.
 */
import { type DescMessage, type MessageShape, toJsonString } from '@bufbuild/protobuf';

/** One line. */
export function messageJson<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return toJsonString(schema, message, { useProtoFieldName: true });
}

/**
 * JSON text on one line, its values as they are written: a line break or a tab in it can only be white space between
 * tokens. Text that is no JSON is quoted.
 */
export function compactJson(text: string): string {
  try {
    JSON.parse(text);
    return text.replace(/[\r\n\t]\s*/g, ' ');
  } catch {
    return JSON.stringify(text);
  }
}
