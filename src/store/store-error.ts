/**
 * Store failures, by what the caller may conclude (quality.md, "Storage rules"). Nothing else is thrown by a store
 * but defects. The message is for the log: it never reaches a caller of the service.
 */

export type StoreFailure =
  /** Nothing was written; the same call may be made again. */
  | 'unavailable'
  /** COMMIT was sent and its outcome is not known: find out before anything else is written. */
  | 'outcome_unknown'
  /** What is stored of the task asked for cannot be trusted (RECORD_DAMAGED); all other tasks go on. Reads only. */
  | 'damaged'
  /** The store must not be used any more; the process ends and the restart tells the truth. */
  | 'fatal';

export class StoreError extends Error {
  constructor(
    readonly failure: StoreFailure,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.name = 'StoreError';
  }
}
