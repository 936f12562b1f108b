/**
 * Settings of the SQLite store: where its file is and what bounds it. Defaults are measured (docs and bench/raw-loop).
 */

export interface SqliteOptions {
  readonly path: string;
  /**
   * Pages in the write-ahead log at which a commit also copies them back into the file. Decides the p99 of commits:
   * measured at 64 tasks per batch, the longest was 3 ms at 250 pages, 4 ms at 1,000, 12 ms at 4,000 and 22 ms at 8,000;
   * at 250 it costs 5 % of throughput, and a disk slow to sync would lose more.
   */
  readonly checkpointPages?: number;
  /** The log is cut back to this after a checkpoint. */
  readonly walBytes?: number;
  readonly writerCacheKiB?: number;
  readonly readerCacheKiB?: number;
  /** The file never grows beyond this many pages of 4 KiB; what does not fit is `unavailable`. Null: the disk decides. */
  readonly maxPages?: number | null;
  readonly busyTimeoutMs?: number;
  /**
   * The key of the hash chains, at least MIN_CHAIN_KEY_BYTES. A store is opened with the key, or without one, that it was
   * first opened with.
   */
  readonly chainKey?: Uint8Array | null;
}

export type SqliteSettings = { readonly [Name in keyof SqliteOptions]-?: Exclude<SqliteOptions[Name], undefined> };

export function settingsOf(options: SqliteOptions): SqliteSettings {
  return {
    path: options.path,
    checkpointPages: options.checkpointPages ?? 1_000,
    walBytes: options.walBytes ?? 16 * 1024 * 1024,
    writerCacheKiB: options.writerCacheKiB ?? 64 * 1024,
    readerCacheKiB: options.readerCacheKiB ?? 8 * 1024,
    maxPages: options.maxPages ?? null,
    busyTimeoutMs: options.busyTimeoutMs ?? 5_000,
    chainKey: options.chainKey ?? null,
  };
}
