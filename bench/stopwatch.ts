/**
 * Time for the benchmarks: comparable between processes of one machine, finer than a millisecond.
 */

/** Epoch ms with fractions. */
export function highResolutionNowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The value below which the share `p` (0..1) of the sorted samples lies. */
export function percentile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((left, right) => left - right);
  return sorted[Math.min(Math.floor(sorted.length * p), sorted.length - 1)] ?? Number.NaN;
}
