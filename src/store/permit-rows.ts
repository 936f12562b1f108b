/**
 * Permits as plans state them and readers see them. A task that needs some stands in line for one after the other, by
 * their names, and enters the ready index when it has passed them all; how, is permit-rules.ts's. Counts are changed by
 * addition in the transaction that takes or gives back.
 */
import type { PermitStance, Permits } from '../kernel/permits.js';
import type { CommitPlan, RecordWrite, RepairWrite } from './commit-plan.js';

/** What a task needs before it may run. */
export interface PermitWish {
  readonly needs: Permits;
  readonly stance: PermitStance;
  /** Its plan claims the task, which is refused where as many run already as may. */
  readonly claims: boolean;
}

export type PermitWrite =
  /**
   * What a task needs under the configuration in force, though nothing else of it changes. With every record write that
   * carries a wish the same is done.
   */
  | {
      readonly kind: 'aligned';
      readonly taskId: string;
      /** Its place, in the lines it waits in and then among the ready; null unless it is queued. */
      readonly readyOrder: number | null;
      readonly wish: PermitWish;
      /** A repair: its rows are put right, and where the counts are wrong these permits are counted anew. */
      readonly repair?: 'rows' | 'rows_and_counts';
    }
  /** Its record is damaged: it leaves its line and the ready index until it is repaired or recalled. */
  | { readonly kind: 'aside'; readonly taskId: string }
  | PermitStep;

/** What is done to a permit as such, at most `most` tasks at a time. Nothing if nobody needs it. */
export type PermitStep =
  /** From now on so many may run with it: who passed too many goes back into line, or more pass. */
  | { readonly kind: 'limited'; readonly name: string; readonly limit: number; readonly most: number }
  /** It is needed no more: those who run with it or wait for it are freed of it. */
  | { readonly kind: 'dissolved'; readonly name: string; readonly most: number }
  /** Those that were set aside stand in line again. */
  | { readonly kind: 'recalled'; readonly name: string; readonly most: number };

export type Alignment = Extract<PermitWrite, { readonly kind: 'aligned' }>;

/** Everything that a plan says of permits: what its records wish first, in their order. */
export function permitWritesOf(plan: CommitPlan): readonly PermitWrite[] {
  const { records, repairs = NOTHING, permits = NOTHING } = plan;
  const wishes = repairs.length > 0 || records.some(({ index }) => index.permits !== undefined);
  return wishes ? [...records.flatMap(alignmentOf), ...repairs.flatMap(realignmentOf), ...permits] : permits;
}

export function alignmentsOf(plan: CommitPlan): readonly Alignment[] {
  return permitWritesOf(plan).filter((write) => write.kind === 'aligned');
}

const NOTHING: readonly never[] = [];

function alignmentOf(write: RecordWrite): readonly Alignment[] {
  const { permits: wish, readyOrder } = write.index;
  if (wish === undefined) return [];
  const taskId = 'admission' in write ? write.admission.taskId : write.taskId;
  return [{ kind: 'aligned', taskId, readyOrder, wish }];
}

/** Also of a task that needs none: it may have places all the same. */
function realignmentOf({ taskId, index, rederive, recount }: RepairWrite): readonly Alignment[] {
  if (index.permits === undefined && !rederive) return [];
  const { permits: wish = NO_WISH, readyOrder } = index;
  const aligned = { kind: 'aligned', taskId, readyOrder, wish } as const;
  return [rederive ? { ...aligned, repair: recount ? 'rows_and_counts' : 'rows' } : aligned];
}

const NO_WISH: PermitWish = { needs: [], stance: 'none', claims: false };

/** A task that a commit put into the ready index though it was not sure of it before: it has passed its permits. */
export interface TaskReady {
  readonly taskId: string;
  readonly routeKey: string;
  readonly readyOrder: number;
}

/** So many more may begin with a permit. */
export interface PermitRoom {
  readonly name: string;
  readonly room: number;
}

/** What a plan did to permits beside the records that it names. */
export interface PermitsMoved {
  readonly ready: readonly TaskReady[];
  /** Who was ready and waits again, since another one took the room. One that is in `ready` too came to be so later. */
  readonly unready: readonly TaskReady[];
  /** Of the permits that somebody began or ceased to run with, or that were given another limit. */
  readonly rooms: readonly PermitRoom[];
  /** Permits of which there is more to do than one plan may; a `limited` step goes on with it. */
  readonly unsettled: readonly string[];
}

/** Of several writes one after the other; what there is none of is absent. */
export function movedBy(writes: readonly PermitsMoved[]): Partial<PermitsMoved> {
  const ready = writes.flatMap((one) => one.ready);
  const unready = writes.flatMap((one) => one.unready);
  const rooms = writes.flatMap((one) => one.rooms);
  const unsettled = writes.flatMap((one) => one.unsettled);
  return {
    ...(ready.length === 0 ? {} : { ready }),
    ...(unready.length === 0 ? {} : { unready }),
    ...(rooms.length === 0 ? {} : { rooms }),
    ...(unsettled.length === 0 ? {} : { unsettled }),
  };
}

/** A permit that somebody runs with or waits for. */
export interface PermitState {
  readonly name: string;
  readonly limit: number;
  readonly running: number;
  /** Somebody stands in a line of it, waiting or let pass. */
  readonly queued: boolean;
  /** Under this limit, nobody waits in a line that has room, and nobody passed without. */
  readonly settled: boolean;
  /** Somebody damaged was set aside. */
  readonly aside: boolean;
}

/** Of many holders so many are named, and of many before a task so many counted: for people, not for decisions. */
export const MAX_HOLDERS_NAMED = 20;
export const MAX_AHEAD_COUNTED = 1_000;
