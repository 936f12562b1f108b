/**
 * A share of work as a bar and a percentage.
 */

/** `[######------]  52%`; without a share the bar is empty and there is no number. */
export function progressBar(fraction: number | undefined, cells: number): string {
  const share = fraction === undefined ? 0 : Math.min(1, Math.max(0, fraction));
  const filled = Math.round(share * cells);
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(cells - filled)}]`;
  return `${bar} ${percentage(fraction)}`;
}

/** Four characters, ` 52%`; rounded down, so that 100% means done. */
export function percentage(fraction: number | undefined): string {
  if (fraction === undefined) return '    ';
  return `${Math.floor(Math.min(1, Math.max(0, fraction)) * 100)}%`.padStart(4);
}
