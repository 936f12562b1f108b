/**
 * Units: what one transaction keeps or drops as a whole. Every decision on the same record within a batch builds on
 * the one before and joins its unit, so a chain (submitted + claimed, accepted + started + completed) is one record
 * write. When a unit loses, each of its works is judged afresh. A session write is a unit of its own.
 */
import { Draft } from '../kernel/draft.js';
import { placementIndex } from './placement-index.js';
import type { TaskRecord } from '../kernel/record.js';
import { routeKeyOf } from '../kernel/placement.js';
import type {
  CommitPlan,
  Diagnostic,
  LedgerEntry,
  PlanVerdict,
  RecordWrite,
  SessionRead,
  SessionWrite,
} from '../store/commit-plan.js';
import type { Committed } from './publisher.js';
import type { Work } from './work.js';

const NONE: readonly never[] = [];

/** Who waits for a unit, and what they are told once its fate is known. */
class Answers {
  answers: Answer[] = [];

  /** The work is told once the unit is committed, or at once after the batch when there is nothing to commit. */
  answer(work: Work, onCommitted: (commit: Committed | null) => void): void {
    this.answers.push({ work, onCommitted });
  }

  /** Takes out those who do not wait for an unknown outcome; the authority's own works go on waiting for it. */
  impatient(): readonly Work[] {
    const impatient = this.answers.filter(({ work }) => work.waitsForOutcome !== true);
    this.answers = this.answers.filter(({ work }) => work.waitsForOutcome === true);
    return impatient.map(({ work }) => work);
  }
}

export type Unit = RecordUnit | SessionUnit;

export class SessionUnit extends Answers {
  readonly kind = 'session';

  constructor(private readonly write: SessionWrite) {
    super();
  }

  plan(): CommitPlan {
    return {
      recordReads: NONE,
      sessionReads: NONE,
      records: NONE,
      sessions: [this.write],
      ledger: NONE,
      diagnostics: NONE,
    };
  }
}

export class RecordUnit extends Answers {
  readonly kind = 'record';
  private readonly sessionReads = new Map<string, SessionRead>();
  private readonly answered = new Map<string, number>();
  private readonly ledger: LedgerEntry[] = [];
  private readonly diagnostics: Diagnostic[] = [];

  private constructor(
    readonly draft: Draft,
    /** The record that the decisions started from; null when the unit admits it. */
    readonly base: TaskRecord | null,
  ) {
    super();
  }

  static admitting(draft: Draft): RecordUnit {
    return new RecordUnit(draft, null);
  }

  static changing(record: TaskRecord, now: number): RecordUnit {
    return new RecordUnit(Draft.of(record, now), record);
  }

  reads(session: SessionRead): void {
    // By attachment too: what an older stream of a session said must not pass for what its newer one may say.
    const key = `${session.sessionId}\n${String(session.attachment)}`;
    if (this.sessionReads.get(key)?.needs !== 'live') this.sessionReads.set(key, session);
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
  plan(): CommitPlan | null {
    const write = this.recordWrite();
    if (write === null && this.ledger.length === 0 && this.diagnostics.length === 0) return null;
    const readOnly = write === null && this.base !== null;
    return {
      recordReads: readOnly ? [{ taskId: this.base.admission.taskId, version: this.base.lastEvent }] : NONE,
      sessionReads: write === null ? NONE : [...this.sessionReads.values()],
      records: write === null ? NONE : [write],
      sessions: NONE,
      ledger: this.ledger,
      diagnostics: this.diagnostics,
    };
  }

  /** What the publisher tells; null for a unit without events. */
  committed(verdict: Extract<PlanVerdict, { kind: 'committed' }>): Committed | null {
    const { draft, base } = this;
    const firstSequence = verdict.firstSequences[0];
    if (draft.events.length === 0 || firstSequence === undefined) return null;
    return {
      taskId: draft.record.admission.taskId,
      before: base,
      record: draft.record,
      events: draft.events,
      firstSequence,
    };
  }

  private recordWrite(): RecordWrite | null {
    const { draft, base } = this;
    if (draft.events.length === 0) return null;
    const { record, events } = draft;
    const index = placementIndex(record);
    if (base === null) {
      const { admission } = record;
      return { kind: 'insert', admission, routeKey: routeKeyOf(admission), record, index, events };
    }
    return { kind: 'update', taskId: record.admission.taskId, baseVersion: base.lastEvent, record, index, events };
  }
}

export interface Answer {
  readonly work: Work;
  readonly onCommitted: (commit: Committed | null) => void;
}
