/**
 * What the store is told and tells about taking finished tasks away: the write that leaves a tombstone, the tasks whose
 * time has come, and the answers that operators' calls without a task keep under their keys.
 */
import type { Tombstone } from '../kernel/tombstone.js';

/**
 * Takes a task away whole, alone in its plan. Refused (`conflict`) unless it stands at this version; while attached
 * children of it live, an edge to or from it is open, or something about it is still to be told. From the commit on no
 * read finds anything of it but the tombstone; its rows go in bounded steps, `sweepPurged`. The same transaction
 * advances the horizon to its last event.
 */
export interface PurgeWrite {
  readonly taskId: string;
  /** The number of the last event the decision saw. */
  readonly version: number;
  readonly tombstone: Tombstone;
}

/** A finished task whose retention is over, by name. */
export interface PurgeableTask {
  readonly taskId: string;
  readonly version: number;
  /** Epoch ms. */
  readonly purgeAt: number;
  /** Admission order; with `purgeAt` the position to continue from. */
  readonly order: number;
}

/** The first answer to an operator's call that concerns no single task, kept under its key. */
export interface OperationEntry {
  readonly key: string;
  /** `sha256:<hex>` of the call's canonical content. */
  readonly contentHash: string;
  /** What a repeat is answered with, as JSON text; opaque to the store. */
  readonly answerJson: string;
  /** Epoch ms. */
  readonly at: number;
}

/** Kept unless the key is taken; what stands there stays. Entries of before `forgetBefore` (epoch ms) may go. */
export interface OperationWrite {
  readonly entry: OperationEntry;
  readonly forgetBefore: number;
}
