/**
 * Columns of text: as wide as their content, the last one cut where the terminal ends. Colour is applied after
 * measuring, by cell.
 */
import { clipText } from './plain-text.js';

export interface Cell {
  readonly text: string;
  readonly paint?: (text: string) => string;
}

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Longer text is cut. Default 60. */
  readonly maxWidth?: number;
}

const GAP = '  ';
const DEFAULT_MAX_WIDTH = 60;
/** The last column is never squeezed below this, however narrow the terminal says it is. */
const LEAST_LAST_WIDTH = 12;

/** Lines, the title first. `width` 0: no limit. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly (Cell | string)[])[],
  width: number,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column, at) => measured(row[at] ?? '', column)));
  const widths = columns.map((column, at) =>
    Math.max(column.title.length, ...cells.map((row) => [...(row[at]?.text ?? '')].length)),
  );
  squeezeLast(widths, width);
  const titles = columns.map((column) => ({ text: column.title }));
  return [titles, ...cells].map((row) =>
    row
      .map((cell, at) => align(cell, columns[at]?.align ?? 'left', widths[at] ?? 0, at === columns.length - 1))
      .join(GAP)
      .trimEnd(),
  );
}

function measured(cell: Cell | string, column: Column): Cell {
  const given = typeof cell === 'string' ? { text: cell } : cell;
  return { ...given, text: clipText(given.text, column.maxWidth ?? DEFAULT_MAX_WIDTH) };
}

function squeezeLast(widths: number[], width: number): void {
  const last = widths.length - 1;
  if (width <= 0 || last < 0) return;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + GAP.length, 0);
  widths[last] = Math.min(widths[last] ?? 0, Math.max(LEAST_LAST_WIDTH, width - before));
}

function align(cell: Cell, side: 'left' | 'right', width: number, isLast: boolean): string {
  const text = clipText(cell.text, width);
  const padding = ' '.repeat(Math.max(0, width - [...text].length));
  const painted = cell.paint === undefined ? text : cell.paint(text);
  if (side === 'right') return padding + painted;
  return isLast ? painted : painted + padding;
}
