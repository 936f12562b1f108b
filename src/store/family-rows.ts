/**
 * What the store keeps about families and dependencies beside the records: edges, the counts that many tasks share, and
 * what is still to be told to those who follow a task (lifecycle.md section 8). Counts are changed by addition, never
 * written; what a decision presumes about one is checked in its own transaction.
 */
import type { DependencyCondition } from '../kernel/admission/family-policy.js';
import type { TerminalStatus } from '../kernel/status.js';

export interface FamilyCounts {
  /** Attached children that are not over. */
  readonly liveChildren: number;
  /** Tasks that this one still waits for. */
  readonly unsatisfied: number;
}

export const NO_COUNTS: FamilyCounts = { liveChildren: 0, unsatisfied: 0 };

export interface ChildRow {
  readonly taskId: string;
  /** Admission order, to continue from. */
  readonly order: number;
}

export interface WaiterRow extends ChildRow {
  readonly condition: DependencyCondition;
  /** Its count at this moment. */
  readonly unsatisfied: number;
}

/** What followers are told of: a cancel request concerns children only, an end concerns waiters too. */
export type FollowedOutcome = 'cancel_requested' | TerminalStatus;

/** A fact whose followers are not all done yet; survives whatever becomes of the process. */
export interface Propagation {
  readonly taskId: string;
  readonly generation: number;
  readonly outcome: FollowedOutcome;
  /** The number of the fact's event: a later fact of the generation replaces it. */
  readonly eventNumber: number;
}

/** As it is read: with the admission order of its task, which with the generation is the position to continue from. */
export interface StoredPropagation extends Propagation {
  readonly order: number;
}

export interface EdgeOpened {
  readonly kind: 'edge_opened';
  readonly upstreamId: string;
  /** The upstream generation that counts. */
  readonly generation: number;
  readonly waiterId: string;
  readonly condition: DependencyCondition;
}

export type LinkWrite =
  /** A new task names its parent; attached and live it counts among the parent's live children (+1). */
  | { readonly kind: 'child_admitted'; readonly parentId: string; readonly childId: string; readonly live: boolean }
  /** A new generation of an attached child (+1). Refused unless it is there and not live. */
  | { readonly kind: 'child_revived'; readonly parentId: string; readonly childId: string }
  /** An attached child is over (−1). Refused unless it is there and live. */
  | { readonly kind: 'child_ended'; readonly parentId: string; readonly childId: string }
  /** Refused while attached children of this task live. */
  | { readonly kind: 'no_live_children'; readonly parentId: string }
  /** The waiter waits for one task more (+1). */
  | EdgeOpened
  /** It waits for one task less (−1). Refused when the edge is not there. */
  | {
      readonly kind: 'edge_closed';
      readonly upstreamId: string;
      readonly generation: number;
      readonly waiterId: string;
    }
  /** What the closed edges of this plan leave open: refused when the count says otherwise. */
  | { readonly kind: 'edges_left'; readonly waiterId: string; readonly any: boolean }
  /** It waits for nothing any more, however many edges were open. */
  | { readonly kind: 'edges_dropped'; readonly waiterId: string }
  /** Followers are to be told; replaces an earlier fact of the generation. */
  | { readonly kind: 'propagation'; readonly row: Propagation }
  /** All were told. Refused when another fact took its place. */
  | { readonly kind: 'propagated'; readonly row: Propagation };
