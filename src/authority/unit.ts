/**
 * Units: what one transaction keeps or drops as a whole. Every decision on the same record within a batch builds on
 * the one before and joins its unit, so a chain (submitted + claimed, accepted + started + completed) is one record
 * write. When a unit loses, each of its works is judged afresh. A session write, what is written of
 * families alone, a purge and an operation are units of their own.
 */
import { Draft } from '../kernel/draft.js';
import { type ClosedEdge, linksOf, propagationOf } from './family-links.js';
import { type IndexRules, placementIndex } from './placement-index.js';
import type { TaskRecord } from '../kernel/record.js';
import { routeKeyOf } from '../kernel/placement.js';
import type {
  CommitPlan,
  Diagnostic,
  LedgerEntry,
  PlanVerdict,
  RecordRead,
  RecordWrite,
  SessionRead,
  SessionWrite,
} from '../store/commit-plan.js';
import type { EdgeOpened, LinkWrite } from '../store/family-rows.js';
import type { OperationWrite, PurgeWrite, TombstoneRepair } from '../store/purge-rows.js';
import type { PermitWrite } from '../store/permit-rows.js';
import type { Committed } from './publisher.js';
import type { RepairUnit } from './repair-unit.js';
import { Answers } from './unit-answers.js';

const NONE: readonly never[] = [];
const NOTHING: CommitPlan = {
  recordReads: NONE,
  sessionReads: NONE,
  records: NONE,
  sessions: NONE,
  ledger: NONE,
  diagnostics: NONE,
};
/** Never written to: a unit that has an edge makes a list of its own. */
const NO_EDGES: EdgeOpened[] = [];
const NO_CLOSED: ClosedEdge[] = [];

export type Unit = RecordUnit | SessionUnit | LinksUnit | RepairUnit | PurgeUnit | OperationUnit | PermitsUnit;

export class SessionUnit extends Answers {
  readonly kind = 'session';

  constructor(private readonly write: SessionWrite) {
    super();
  }

  plan(): CommitPlan {
    return { ...NOTHING, sessions: [this.write] };
  }
}

/** No record: only what the store keeps of families. */
export class LinksUnit extends Answers {
  readonly kind = 'links';

  constructor(private readonly links: readonly LinkWrite[]) {
    super();
  }

  plan(): CommitPlan {
    return { ...NOTHING, links: this.links };
  }
}

/** No record: only what the store keeps of permits, resting on the records that it was derived from. */
export class PermitsUnit extends Answers {
  readonly kind = 'permits';

  constructor(
    private readonly recordReads: readonly RecordRead[],
    private readonly permits: readonly PermitWrite[],
  ) {
    super();
  }

  plan(): CommitPlan {
    return { ...NOTHING, recordReads: this.recordReads, permits: this.permits };
  }
}

/** Takes a task away, on what was read of it and of its parent. */
export class PurgeUnit extends Answers {
  readonly kind = 'purge';

  constructor(
    private readonly purge: PurgeWrite,
    private readonly recordReads: readonly RecordRead[],
  ) {
    super();
  }

  plan(): CommitPlan {
    return { ...NOTHING, recordReads: this.recordReads, purge: this.purge };
  }
}

/** Keeps the answer to an operator's call that concerns no task, with what it did where that is no record. */
export class OperationUnit extends Answers {
  readonly kind = 'operation';

  constructor(
    private readonly operation: OperationWrite,
    private readonly tombstones: readonly TombstoneRepair[] = NONE,
  ) {
    super();
  }

  plan(): CommitPlan {
    const plan = { ...NOTHING, operations: [this.operation] };
    return this.tombstones.length === 0 ? plan : { ...plan, tombstones: this.tombstones };
  }
}

export class RecordUnit extends Answers {
  readonly kind = 'record';
  /** Another decision of the batch rests on it as it is. */
  sealed = false;
  private recordReads: Map<string, RecordRead> | null = null;
  private opened: EdgeOpened[] = NO_EDGES;
  private closed: ClosedEdge[] = NO_CLOSED;
  private readonly sessionReads = new Map<string, SessionRead>();
  private readonly answered = new Map<string, number>();
  private readonly ledger: LedgerEntry[] = [];
  private readonly diagnostics: Diagnostic[] = [];

  private constructor(
    readonly draft: Draft,
    /** The record that the decisions started from; null when the unit admits it. */
    readonly base: TaskRecord | null,
    private readonly idIsFresh = false,
  ) {
    super();
  }

  /** `idIsFresh`: its id was made for it. */
  static admitting(draft: Draft, idIsFresh: boolean): RecordUnit {
    return new RecordUnit(draft, null, idIsFresh);
  }

  static changing(record: TaskRecord, now: number): RecordUnit {
    return new RecordUnit(Draft.of(record, now), record);
  }

  reads(session: SessionRead): void {
    // By attachment too: what an older stream of a session said must not pass for what its newer one may say.
    const key = `${session.sessionId}\n${String(session.attachment)}`;
    if (this.sessionReads.get(key)?.needs !== 'live') this.sessionReads.set(key, session);
  }

  /** The record of another task, as its latest decision saw it. */
  readsRecord(read: RecordRead): void {
    this.recordReads ??= new Map();
    this.recordReads.set(read.taskId, read);
  }

  /** A task that is admitted waits for this one. */
  openEdge(edge: EdgeOpened): void {
    this.opened = [...this.opened, edge];
  }

  forgetEdges(): void {
    this.opened = NO_EDGES;
  }

  /** It waits no more for this task; false when that was said before. */
  closeEdge(edge: ClosedEdge): boolean {
    if (this.closed.some(({ upstreamId }) => upstreamId === edge.upstreamId)) return false;
    this.closed = [...this.closed, edge];
    return true;
  }

  get closedEdges(): number {
    return this.closed.length;
  }

  /** Whether it ends or fences a task that others follow. */
  get hasNews(): boolean {
    const { draft, base } = this;
    return draft.events.length > 0 && propagationOf(base, draft.record) !== null;
  }

  /** The worker's numbers that have their answer in this batch: a refused event leaves no other trace in it. */
  answeredThrough(claim: { readonly sessionId: string; readonly epoch: number }): number {
    return this.answered.get(`${claim.sessionId}\n${String(claim.epoch)}`) ?? 0;
  }

  noteAnswered(claim: { readonly sessionId: string; readonly epoch: number }, through: number): void {
    this.answered.set(`${claim.sessionId}\n${String(claim.epoch)}`, through);
  }

  /** What this very batch keeps under an intent's key. */
  remembered(intentKey: string): LedgerEntry | null {
    return this.ledger.find((entry) => entry.intentKey === intentKey) ?? null;
  }

  remember(entry: LedgerEntry): void {
    this.ledger.push(entry);
  }

  note(diagnostic: Diagnostic): void {
    this.diagnostics.push(diagnostic);
  }

  /** The finished plan, or null when nothing is to be written. */
  plan(rules: IndexRules): CommitPlan | null {
    const write = this.recordWrite(rules);
    const { draft, base, opened, closed } = this;
    const counts = write === null && closed.length > 0;
    if (write === null && this.ledger.length === 0 && this.diagnostics.length === 0 && !counts) return null;
    const links =
      write !== null || counts
        ? linksOf({ base, record: draft.record, events: draft.events, opened, closed })
        : undefined;
    return {
      recordReads: this.readsOf(write, counts),
      sessionReads: write === null ? NONE : [...this.sessionReads.values()],
      records: write === null ? NONE : [write],
      sessions: NONE,
      ledger: this.ledger,
      diagnostics: this.diagnostics,
      ...(links === undefined ? {} : { links }),
    };
  }

  /** Counting a waiter's edges down presumes nothing of its record: others may count at the same time. */
  private readsOf(write: RecordWrite | null, counts: boolean): readonly RecordRead[] {
    const { base, recordReads } = this;
    if (write === null && base !== null && !counts) {
      return [{ taskId: base.admission.taskId, version: base.lastEvent }];
    }
    return recordReads === null ? NONE : [...recordReads.values()];
  }

  /** What the publisher tells; null for a unit without events. */
  committed(verdict: Extract<PlanVerdict, { kind: 'committed' }>): Committed | null {
    const { draft, base } = this;
    const [firstSequence] = verdict.firstSequences;
    const [link] = verdict.links;
    if (draft.events.length === 0 || firstSequence === undefined || link === undefined) return null;
    return {
      taskId: draft.record.admission.taskId,
      before: base,
      record: draft.record,
      events: draft.events,
      firstSequence,
      link,
    };
  }

  private recordWrite(rules: IndexRules): RecordWrite | null {
    const { draft, base, idIsFresh } = this;
    if (draft.events.length === 0) return null;
    const { record, events } = draft;
    const index = placementIndex(record, rules, events);
    if (base === null) {
      const { admission } = record;
      const routeKey = routeKeyOf(admission);
      const insert = { kind: 'insert', admission, routeKey, record, index, events } as const;
      return idIsFresh ? { ...insert, idIsFresh } : insert;
    }
    return { kind: 'update', taskId: record.admission.taskId, baseVersion: base.lastEvent, record, index, events };
  }
}
