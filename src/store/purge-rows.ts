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

/**
 * An operator's repair of what is left of a purged task. Refused (`conflict` on the record) unless the tombstone still
 * is as it was seen. Whatever it does not name stays as it is.
 */
export interface TombstoneRepair {
  readonly taskId: string;
  /** `AuditedTombstone.fingerprint` of what it was decided on. */
  readonly fingerprint: string;
  /** Since when it is given up (epoch ms): its name stays taken, and nothing else is known any more. */
  readonly giveUpAt: number | null;
  /** Its key is made to lead to it, unless what the key leads to was admitted under it. */
  readonly key: { readonly namespace: string; readonly idempotencyKey: string } | null;
  /** The horizon is at least this from now on. */
  readonly horizon: number;
  /** What else is left of the task goes: at once where it is little, the rest is swept. */
  readonly clear: boolean;
}
