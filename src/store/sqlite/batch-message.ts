/**
 * A batch on its way to the writer thread: every text is encoded on this side and all of it goes into one flat list,
 * because cloning a list of texts between threads is cheap and cloning nested objects is not. What is rare (several
 * records read, session writes, ledger, diagnostics, families, permits) travels as it is.
 */
import type { TaskRecord } from '../../kernel/record.js';
import { isTerminal } from '../../kernel/status.js';
import { encodeAdmission } from '../admission-codec.js';
import type {
  CommitPlan,
  PlanVerdict,
  RecordIndex,
  RecordInsert,
  RecordUpdate,
  RepairWrite,
  SessionRead,
} from '../commit-plan.js';
import { encodeEvents } from '../history-codec.js';
import { type PermitWrite, type PermitsMoved, permitWritesOf } from '../permit-rows.js';
import type { PurgeWrite } from '../purge-rows.js';
import { encodeRecord } from '../record-codec.js';

type RareLists = 'recordReads' | 'sessions' | 'ledger' | 'diagnostics' | 'links' | 'operations' | 'tombstones';

export interface RareParts extends Required<Pick<CommitPlan, RareLists>> {
  readonly purge: PurgeWrite | null;
  readonly repairs: readonly RepairRow[];
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
  /** Undefined: as it stands, which is what nearly every write says. */
  readonly purgeAt: number | null | undefined;
  readonly record: string;
  readonly history: string;
}

export interface RowInsert extends RowWrite {
  readonly kind: 'insert';
  readonly idIsFresh: boolean;
  readonly routeKey: string;
  readonly namespace: string;
  readonly idempotencyKey: string;
  readonly admission: string;
}

export interface RowUpdate extends RowWrite {
  readonly kind: 'update';
  readonly baseVersion: number;
}

/** A repair. `version` is the number of its event, which is all that its history row holds. */
export interface RepairRow extends RowWrite {
  readonly purgeAt: number | null;
  readonly fingerprint: string;
  readonly version: number;
  readonly routeKey: string;
  readonly rederive: Derived | null;
  readonly redact: number | null;
}

/** What stands beside a record and follows from it. */
export interface Derived {
  readonly namespace: string;
  readonly idempotencyKey: string;
  readonly parentId: string | null;
  readonly livesAsChild: boolean;
}

export interface RowPlan {
  readonly sessionReads: readonly SessionRead[];
  readonly writes: readonly (RowInsert | RowUpdate)[];
  /** Null where all of them are empty. */
  readonly rare: RareParts | null;
}

/** What a write begins with: which it is, and what else there is to it. */
const UPDATE = 1;
const FRESH_ID = 2;
const HAS_PURGE_AT = 4;

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

const NONE: readonly never[] = [];

function rareParts(plan: CommitPlan): RareParts | null {
  const { recordReads, sessions, ledger, diagnostics, links = NONE, operations = NONE, purge = null } = plan;
  const { tombstones = NONE } = plan;
  const repairs = plan.repairs?.map(repairRow) ?? NONE;
  const permits = permitWritesOf(plan);
  const lists = recordReads.length + sessions.length + ledger.length + diagnostics.length + links.length;
  const others = operations.length + repairs.length + permits.length + tombstones.length;
  if (lists + others === 0 && purge === null) return null;
  return { recordReads, sessions, ledger, diagnostics, links, operations, purge, repairs, permits, tombstones };
}

function repairRow({ taskId, fingerprint, record, routeKey, index, event, rederive, redact }: RepairWrite): RepairRow {
  return {
    taskId,
    fingerprint,
    events: 1,
    version: event.number,
    routeKey,
    readyOrder: readyOrderOf(index),
    nextDueAt: index.nextDueAt,
    leaseSession: index.leaseSession,
    purgeAt: index.purgeAt,
    record: encodeRecord(record),
    history: encodeEvents([event]),
    rederive: rederive ? derivedOf(record) : null,
    redact,
  };
}

function derivedOf({ admission, status }: TaskRecord): Derived {
  const { namespace, idempotencyKey } = admission;
  const { parent } = admission.policy;
  const livesAsChild = parent?.attached === true && !isTerminal(status);
  return { namespace, idempotencyKey, parentId: parent?.taskId ?? null, livesAsChild };
}

/** A task that needs permits is ready when it has passed them all. */
function readyOrderOf({ permits, readyOrder }: RecordIndex): number | null {
  return permits === undefined ? readyOrder : null;
}

/** A batch has few routes, and mostly the one just seen. */
function routeIndex(routeKeys: string[], routeKey: string): number {
  const known = routeKeys.lastIndexOf(routeKey);
  return known === -1 ? routeKeys.push(routeKey) - 1 : known;
}

function pushInsert(items: Item[], write: RecordInsert, route: number): void {
  const { admission, record, index, events, idIsFresh = false } = write;
  const saysPurge = index.purgeAt !== null;
  items.push(
    (idIsFresh ? FRESH_ID : 0) | (saysPurge ? HAS_PURGE_AT : 0),
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
  if (saysPurge) items.push(index.purgeAt);
}

function pushUpdate(items: Item[], write: RecordUpdate): void {
  const { taskId, baseVersion, record, index, events } = write;
  // A first generation that lives never had one; a later one may have taken it over from the one before.
  const saysPurge = index.purgeAt !== null || record.generation > 1;
  items.push(
    UPDATE | (saysPurge ? HAS_PURGE_AT : 0),
    taskId,
    events.length,
    readyOrderOf(index),
    index.nextDueAt,
    index.leaseSession,
    encodeRecord(record),
    encodeEvents(events),
    baseVersion,
  );
  if (saysPurge) items.push(index.purgeAt);
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
      const purgeAt = (): number | null | undefined => ((kind & HAS_PURGE_AT) === 0 ? undefined : numberOrNull());
      if ((kind & UPDATE) !== 0) {
        writes.push({ kind: 'update', ...shared, baseVersion: number(), purgeAt: purgeAt() });
      } else {
        const routeKey = routeKeys[number()] ?? '';
        writes.push({
          kind: 'insert',
          ...shared,
          idIsFresh: (kind & FRESH_ID) !== 0,
          routeKey,
          namespace: text(),
          idempotencyKey: text(),
          admission: text(),
          purgeAt: purgeAt(),
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
  /** Of every record written, one after the other: one text is cheap to clone. */
  readonly links: string;
  /** By plan: what it did to permits. */
  readonly permits: readonly (readonly [number, Partial<PermitsMoved>])[];
}

const LINK_DIGITS = 64;
const NOTHING_WRITTEN: PlanVerdict = { kind: 'committed', firstSequences: [], links: [] };

export function verdictsOf(plans: readonly CommitPlan[], reply: BatchReply): readonly PlanVerdict[] {
  const lost = reply.lost.length === 0 ? null : new Map(reply.lost);
  const permits = reply.permits.length === 0 ? null : new Map(reply.permits);
  let sequence = reply.firstSequence;
  let linked = 0;
  return plans.map((plan, index) => {
    const verdict = lost?.get(index);
    if (verdict !== undefined) return verdict;
    const moved = permits?.get(index);
    if (plan.records.length === 0 && plan.repairs === undefined && moved === undefined) return NOTHING_WRITTEN;
    const firstSequences: number[] = [];
    const links: string[] = [];
    const written = (events: number): void => {
      firstSequences.push(sequence);
      sequence += events;
      links.push(reply.links.slice(linked, linked + LINK_DIGITS));
      linked += LINK_DIGITS;
    };
    for (const { events } of plan.records) written(events.length);
    for (let n = plan.repairs?.length ?? 0; n > 0; n--) written(1);
    return { kind: 'committed', firstSequences, links, ...moved };
  });
}
