/**
 * The work of one intent on one task, keyed or not: Transition, Cancel, Resume, and the authority's own timers and
 * lease recovery. A keyed intent finds its first answer in the ledger and never applies twice
 * (lifecycle.md section 4, step 2).
 */
import { judge } from '../kernel/decide.js';
import type { TaskEvent } from '../kernel/event.js';
import type { Guards, Intent } from '../kernel/intent.js';
import { NO_GUARDS } from '../kernel/intent.js';
import type { TaskRecord } from '../kernel/record.js';
import { permitRefusal } from '../kernel/permits.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { Guard, Verdict } from '../kernel/verdict.js';
import type { LedgerEntry, PlanVerdict, SessionRead } from '../store/commit-plan.js';
import type { Batch } from './batch.js';
import type { GenerationIds } from './generation-ids.js';
import type { Committed } from './publisher.js';
import { lostStanding, sessionGone } from './session-work.js';
import type { RecordUnit } from './unit.js';
import type { Work } from './work.js';

export interface IntentKey {
  readonly key: string;
  /** `sha256:<hex>` of the intent's canonical content. */
  readonly contentHash: string;
}

export interface IntentRequest {
  readonly taskId: string;
  readonly intent: Intent;
  readonly guards?: Guards;
  readonly key?: IntentKey;
  /** The session whose standing the decision rests on. */
  readonly session?: SessionRead;
  /** Which answers a keyed intent keeps in the ledger: by default those that changed something. */
  readonly remembers?: (outcome: IntentOutcome) => boolean;
}

/** How an intent was judged, before it was committed. */
export type IntentOutcome =
  | {
      readonly kind: 'applied';
      readonly events: readonly TaskEvent[];
      readonly before: TaskRecord;
      readonly after: TaskRecord;
    }
  | { readonly kind: 'unchanged'; readonly record: TaskRecord }
  | { readonly kind: 'conflict'; readonly guard: Guard; readonly observed: string; readonly record: TaskRecord }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly record: TaskRecord | null };

/** The outcome, with where it stands in the store; or the outcome of the same key before. */
export type IntentAnswer =
  | (Extract<IntentOutcome, { kind: 'applied' }> & { readonly firstSequence: number })
  | Exclude<IntentOutcome, { kind: 'applied' }>
  | { readonly kind: 'replayed'; readonly remembered: Remembered; readonly record: TaskRecord };

/** What the ledger keeps of an answer. */
export interface Remembered {
  readonly kind: 'applied' | 'unchanged' | 'refused';
  readonly intent: Intent['kind'];
  readonly generation: number;
  readonly generationId: string;
  readonly previousStatus: string;
  readonly status: string;
  /** The fact that answers it: the last one of its commit. Null when it changed nothing. */
  readonly revision: number | null;
  readonly eventNumber: number | null;
  readonly epoch: number | null;
}

/** For a Resume that names its new generation: the ids that are taken, as far as they were known when it was asked. */
export interface Naming {
  readonly ids: GenerationIds;
  /** Called instead of an answer when that was not far enough. */
  readonly outdated: () => void;
}

export class IntentWork implements Work {
  readonly weightBytes = 1_024;
  private remembered: LedgerEntry | null = null;

  constructor(
    private readonly request: IntentRequest,
    private readonly findLedgerEntry: (taskId: string, intentKey: string) => Promise<LedgerEntry | null>,
    private readonly settle: (answer: IntentAnswer) => void,
    private readonly naming: Naming | null = null,
  ) {}

  get taskId(): string {
    return this.request.taskId;
  }

  readonly prefetch = async (): Promise<void> => {
    const { key, taskId } = this.request;
    if (key !== undefined) this.remembered = await this.findLedgerEntry(taskId, key.key);
  };

  judge(batch: Batch): void {
    const { taskId, intent, guards, session } = this.request;
    const located = batch.locate(taskId);
    if (located.kind === 'refused') {
      return this.settle({ kind: 'refused', refusal: located.refusal, record: null });
    }
    const { unit } = located;
    const { draft } = unit;
    const remembered = this.remembered ?? this.rememberedIn(unit);
    if (remembered !== null) return this.replay(unit, draft.record, remembered);
    // More generations began than were looked at: the id that is named may be one of theirs.
    if (this.naming?.ids.covers(draft.record.generation) === false) return this.naming.outdated();
    const before = draft.record;
    const first = draft.events.length;
    const verdict = judge(draft, intent, guards ?? NO_GUARDS);
    const outcome = outcomeOf(verdict, before, draft.record, draft.events.slice(first));
    if (verdict.kind === 'applied' && session !== undefined) unit.reads(session);
    this.remember(unit, outcome);
    unit.answer(this, (commit) => this.settle(answerOf(outcome, commit, first)));
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'retry' | 'answered' {
    const { key, session, intent, taskId } = this.request;
    if (verdict.kind === 'repeated' && verdict.original.intentKey === key?.key) this.remembered = verdict.original;
    if (lostStanding(verdict, session?.sessionId)) {
      this.refuse(sessionGone());
      return 'answered';
    }
    if (intent.kind === 'claim' && verdict.kind === 'conflict' && verdict.subject === 'permit') {
      this.refuse(permitRefusal(taskId, verdict.id));
      return 'answered';
    }
    // Also when a revision was pinned: on the record as it is now, judging again gives the caller its conflict.
    return 'retry';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal, record: null });
  }

  /** The same key within one batch: the first is not in the store yet, and the second must not be judged anew. */
  private rememberedIn(unit: RecordUnit): LedgerEntry | null {
    const { key } = this.request;
    return key === undefined ? null : unit.remembered(key.key);
  }

  private replay(unit: RecordUnit, record: TaskRecord, entry: LedgerEntry): void {
    const same = entry.contentHash === this.request.key?.contentHash;
    const answer: IntentAnswer = same
      ? { kind: 'replayed', remembered: parseRemembered(entry.answerJson), record }
      : { kind: 'refused', refusal: keyConflict(entry), record };
    unit.answer(this, () => this.settle(answer));
  }

  private remember(unit: RecordUnit, outcome: IntentOutcome): void {
    const { key, taskId, remembers, intent } = this.request;
    if (key === undefined || outcome.kind === 'conflict') return;
    if (!(remembers ?? changedSomething)(outcome)) return;
    const remembered = rememberedOf(intent.kind, outcome);
    if (remembered === null) return;
    unit.remember({
      taskId,
      intentKey: key.key,
      contentHash: key.contentHash,
      answerJson: JSON.stringify(remembered),
    });
  }
}

function changedSomething(outcome: IntentOutcome): boolean {
  return outcome.kind === 'applied';
}

function outcomeOf(
  verdict: Verdict,
  before: TaskRecord,
  after: TaskRecord,
  events: readonly TaskEvent[],
): IntentOutcome {
  switch (verdict.kind) {
    case 'applied':
      return { kind: 'applied', events, before, after };
    case 'unchanged':
      return { kind: 'unchanged', record: before };
    case 'conflict':
      return { kind: 'conflict', guard: verdict.guard, observed: verdict.observed, record: before };
    case 'refused':
      return { kind: 'refused', refusal: verdict.refusal, record: before };
  }
}

function answerOf(outcome: IntentOutcome, commit: Committed | null, first: number): IntentAnswer {
  if (outcome.kind !== 'applied') return outcome;
  return { ...outcome, firstSequence: (commit?.firstSequence ?? 0) + first };
}

function rememberedOf(intent: Intent['kind'], outcome: IntentOutcome): Remembered | null {
  const { kind } = outcome;
  if (kind === 'conflict') return null;
  const record = kind === 'applied' ? outcome.after : outcome.record;
  if (record === null) return null;
  const fact = kind === 'applied' ? [...outcome.events].reverse().find((event) => event.revision !== null) : undefined;
  return {
    kind,
    intent,
    generation: record.generation,
    generationId: record.generationId,
    previousStatus: kind === 'applied' ? outcome.before.status : record.status,
    status: record.status,
    revision: fact?.revision ?? record.cancellation?.revision ?? null,
    eventNumber: fact?.number ?? record.cancellation?.eventNumber ?? null,
    epoch: record.lease?.epoch ?? null,
  };
}

function parseRemembered(json: string): Remembered {
  return JSON.parse(json) as Remembered;
}

function keyConflict(entry: LedgerEntry): Refusal {
  return refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another intent on this task', {
    idempotency_key: entry.intentKey,
    task_id: entry.taskId,
  });
}
