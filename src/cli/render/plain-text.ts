/**
 * Foreign text made fit for one line of a terminal: what a worker or a caller wrote must not move the cursor, change
 * colours or span lines.
 */

// C0, DEL, C1, line separators, bidi controls.
// eslint-disable-next-line no-control-regex -- they are what it is about
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

/** One line without control characters. */
export function plainText(text: string): string {
  return text.replace(UNSAFE, ' ').trim();
}

/** As `plainText`, cut to `width` characters with an ellipsis. */
export function clipText(text: string, width: number): string {
  const points = [...plainText(text)];
  if (points.length <= width) return points.join('');
  return width <= 1 ? points.slice(0, width).join('') : `${points.slice(0, width - 1).join('')}…`;
}

/** Lines of foreign text, each safe; tabs become spaces. */
export function plainLines(text: string): readonly string[] {
  return text
    .replace(/\t/g, '  ')
    .split(/\r?\n/)
    .map((line) => line.replace(UNSAFE, ' ').trimEnd());
}

/** The head of an id, long enough to tell ids of one listing apart: the random end of a UUID, else its beginning. */
export function shortId(id: string): string {
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id)) return `…${id.slice(-8)}`;
  return clipText(id, 16);
}
