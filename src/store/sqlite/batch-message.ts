/**
 * A batch on its way to the writer thread: every text is encoded on this side and all of it goes into one flat list,
 * because cloning a list of texts between threads is cheap and cloning nested objects is not. What is rare (several
 * records read, session writes, ledger, diagnostics, families, permits) travels as it is.
 */
import { encodeAdmission } from '../admission-codec.js';
import type { CommitPlan, PlanVerdict, RecordIndex, RecordInsert, RecordUpdate, SessionRead } from '../commit-plan.js';
import { encodeEvents } from '../history-codec.js';
import { type PermitWrite, type TaskReady, permitWritesOf } from '../permit-rows.js';
import { encodeRecord } from '../record-codec.js';

export interface RareParts extends Required<
  Pick<CommitPlan, 'recordReads' | 'sessions' | 'ledger' | 'diagnostics' | 'links'>
> {
  /** What the records wish among them. */
  readonly permits: readonly PermitWrite[];
}

type Item = string | number | null | RareParts;

export interface BatchMessage {
  readonly plans: number;
  /** Inserts name their route by its place here. */
  readonly routeKeys: readonly string[];
  readonly items: readonly Item[];
}

/** The rows of a record write. `events` is how many the history row holds; `version` the number of the last one. */
interface RowWrite {
  readonly taskId: string;
  readonly events: number;
  readonly readyOrder: number | null;
  readonly nextDueAt: number | null;
  readonly leaseSession: string | null;
  readonly record: string;
  readonly history: string;
}

export interface RowInsert extends RowWrite {
  readonly kind: 'insert';
  readonly routeKey: string;
  readonly namespace: string;
  readonly idempotencyKey: string;
  readonly admission: string;
}

export interface RowUpdate extends RowWrite {
  readonly kind: 'update';
  readonly baseVersion: number;
}

export interface RowPlan {
  readonly sessionReads: readonly SessionRead[];
  readonly writes: readonly (RowInsert | RowUpdate)[];
  /** Null where all of them are empty. */
  readonly rare: RareParts | null;
}

export function encodeBatch(plans: readonly CommitPlan[]): BatchMessage {
  const items: Item[] = [];
  const routeKeys: string[] = [];
  for (const plan of plans) {
    items.push(plan.sessionReads.length, plan.records.length, rareParts(plan));
    for (const { sessionId, attachment, needs } of plan.sessionReads) items.push(sessionId, attachment, needs);
    for (const write of plan.records) {
      if (write.kind === 'insert') pushInsert(items, write, routeIndex(routeKeys, write.routeKey));
      else pushUpdate(items, write);
    }
  }
  return { plans: plans.length, routeKeys, items };
}

const NO_LINKS: RareParts['links'] = [];

function rareParts(plan: CommitPlan): RareParts | null {
  const { recordReads, sessions, ledger, diagnostics, links = NO_LINKS } = plan;
  const permits = permitWritesOf(plan);
  const parts = recordReads.length + sessions.length + ledger.length + diagnostics.length + links.length;
  return parts + permits.length === 0 ? null : { recordReads, sessions, ledger, diagnostics, links, permits };
}

/** A task that needs permits is ready when it holds them all. */
function readyOrderOf({ permits, readyOrder }: RecordIndex): number | null {
  return permits === undefined ? readyOrder : null;
}

/** A batch has few routes, and mostly the one just seen. */
function routeIndex(routeKeys: string[], routeKey: string): number {
  const known = routeKeys.lastIndexOf(routeKey);
  return known === -1 ? routeKeys.push(routeKey) - 1 : known;
}

function pushInsert(items: Item[], write: RecordInsert, route: number): void {
  const { admission, record, index, events } = write;
  items.push(
    0,
    admission.taskId,
    events.length,
    readyOrderOf(index),
    index.nextDueAt,
    index.leaseSession,
    encodeRecord(record),
    encodeEvents(events),
    route,
    admission.namespace,
    admission.idempotencyKey,
    encodeAdmission(admission),
  );
}

function pushUpdate(items: Item[], write: RecordUpdate): void {
  const { taskId, baseVersion, record, index, events } = write;
  items.push(
    1,
    taskId,
    events.length,
    readyOrderOf(index),
    index.nextDueAt,
    index.leaseSession,
    encodeRecord(record),
    encodeEvents(events),
    baseVersion,
  );
}

/** The plans of a message, one by one and in order. */
export function* decodeBatch(message: BatchMessage): Generator<RowPlan, void, undefined> {
  const { items, routeKeys } = message;
  let next = 0;
  const text = (): string => items[next++] as string;
  const number = (): number => items[next++] as number;
  const numberOrNull = (): number | null => items[next++] as number | null;
  for (let plan = 0; plan < message.plans; plan++) {
    const reads = number();
    const records = number();
    const rare = items[next++] as RareParts | null;
    const sessionReads: SessionRead[] = [];
    for (let i = 0; i < reads; i++) {
      sessionReads.push({ sessionId: text(), attachment: number(), needs: text() as SessionRead['needs'] });
    }
    const writes: (RowInsert | RowUpdate)[] = [];
    for (let i = 0; i < records; i++) {
      const kind = number();
      const taskId = text();
      const events = number();
      const readyOrder = numberOrNull();
      const nextDueAt = numberOrNull();
      const leaseSession = items[next++] as string | null;
      const record = text();
      const history = text();
      const shared = { taskId, events, readyOrder, nextDueAt, leaseSession, record, history };
      if (kind === 1) {
        writes.push({ kind: 'update', ...shared, baseVersion: number() });
      } else {
        const routeKey = routeKeys[number()] ?? '';
        writes.push({
          kind: 'insert',
          ...shared,
          routeKey,
          namespace: text(),
          idempotencyKey: text(),
          admission: text(),
        });
      }
    }
    yield { sessionReads, writes, rare };
  }
}

/** What the writer answers: sequences run on from the first one through all plans that were not lost. */
export interface BatchReply {
  readonly firstSequence: number;
  readonly lost: readonly (readonly [number, PlanVerdict])[];
  /** By plan: the tasks that came to hold their permits by it. */
  readonly ready: readonly (readonly [number, readonly TaskReady[]])[];
}

const NOTHING_WRITTEN: PlanVerdict = { kind: 'committed', firstSequences: [] };

export function verdictsOf(plans: readonly CommitPlan[], reply: BatchReply): readonly PlanVerdict[] {
  const lost = reply.lost.length === 0 ? null : new Map(reply.lost);
  const ready = reply.ready.length === 0 ? null : new Map(reply.ready);
  let sequence = reply.firstSequence;
  return plans.map((plan, index) => {
    const verdict = lost?.get(index);
    if (verdict !== undefined) return verdict;
    const readyTasks = ready?.get(index);
    if (plan.records.length === 0 && readyTasks === undefined) return NOTHING_WRITTEN;
    const firstSequences: number[] = [];
    for (const { events } of plan.records) {
      firstSequences.push(sequence);
      sequence += events.length;
    }
    return readyTasks === undefined
      ? { kind: 'committed', firstSequences }
      : { kind: 'committed', firstSequences, ready: readyTasks };
  });
}
