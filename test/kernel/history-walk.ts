// Random walks of one task: two sessions, several generations, a clock that also steps back, and intents of which
// most are legal and some are not. Choices are numbers, so that a failing walk shrinks to a short one.

import fc from 'fast-check';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import {
  NO_GUARDS,
  type AuthoritativeEvent,
  type Guards,
  type Intent,
  type LeaseProof,
  type WorkerReport,
  type WorkerSaying,
} from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { timersOf } from '../../src/kernel/timers.js';
import type { Verdict } from '../../src/kernel/verdict.js';
import { judgeReport, type ReportAnswer } from '../../src/kernel/worker-report.js';
import {
  OPERATOR,
  OWNER,
  PRODUCER,
  SAYINGS,
  STRANGER,
  T0,
  WORKER,
  admission,
  cause,
  claim,
  failure,
  policy,
  settle,
} from './task-world.js';

/** One step: how the clock moves, which action, and four choices that the action spends as it likes. */
export interface Step {
  readonly clockMs: number;
  readonly action: number;
  readonly choices: readonly [number, number, number, number];
}

const choice = fc.nat({ max: 59 });

export const steps = fc.array(
  fc.record<Step>({
    clockMs: fc.constantFrom(0, 0, 1, 20, 1_000, 5_000, 30_000, 120_000, -1_500),
    action: fc.nat({ max: 99 }),
    choices: fc.tuple(choice, choice, choice, choice),
  }),
  { minLength: 1, maxLength: 70, size: 'max' },
);

const span = fc.constantFrom(null, null, 4_000, 25_000, 200_000, 3_000_000_000);

export const policies: fc.Arbitrary<TaskPolicyInput> = fc.record({
  cancellationPolicy: fc.constantFrom('COOPERATIVE', 'FENCED'),
  timeoutMs: span,
  startByMs: span,
  attemptTimeoutMs: span,
  progressTimeoutMs: span,
  notBeforeAtMs: fc.constantFrom(null, null, null, T0 + 6_000),
  retry: fc.record({
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    initialMs: fc.constantFrom(0, 1_000, 40_000),
    jitter: fc.constantFrom(0, 0.5),
    nonRetryableCodes: fc.constantFrom([], ['broken_input']),
  }),
});

/** What one step did, for the invariants to look at. */
export interface Happened {
  readonly before: TaskRecord;
  readonly after: TaskRecord;
  readonly events: readonly TaskEvent[];
  readonly now: number;
  readonly did: Did;
}

export type Did =
  | { readonly kind: 'intent'; readonly intent: Intent; readonly guards: Guards; readonly verdict: Verdict }
  | { readonly kind: 'report'; readonly report: WorkerReport; readonly answer: ReportAnswer }
  /** Nobody asked it of this task: its parent or a task that it waits for became something, or follows from now on. */
  | { readonly kind: 'family' };

export class Walk {
  record: TaskRecord;
  readonly history: TaskEvent[];
  private now = T0;
  private generations = 1;
  /** What the worker knows of its own answers, per epoch. */
  private readonly answered = new Map<number, number>();

  constructor(policyInput: TaskPolicyInput) {
    const admitted = admission(policyInput);
    const draft = Draft.admit(admitted, 'generation-1', admitted.policy.notBeforeAtMs, PRODUCER);
    this.record = draft.record;
    this.history = [...draft.events];
  }

  take(step: Step): Happened {
    this.now = this.clock(step);
    const before = this.record;
    const draft = Draft.of(before, this.now);
    const did = step.action < 45 ? this.report(draft, step) : this.intent(draft, step);
    this.record = draft.record;
    this.history.push(...draft.events);
    return { before, after: draft.record, events: draft.events, now: this.now, did };
  }

  /** Now and then straight to the next timer, which a blind clock would hardly ever meet. */
  private clock({ clockMs, choices }: Step): number {
    const due = timersOf(this.record).map((timer) => timer.dueAt);
    const jump = choices[3] % 6 === 0 && due.length > 0;
    return jump ? Math.max(this.now, Math.min(...due)) : this.now + clockMs;
  }

  private report(draft: Draft, { choices }: Step): Happened['did'] {
    const [kind, count, number, proof] = choices;
    const { record } = draft;
    const stale = proof % 8 === 0;
    const wrong = stale ? (['epoch', 'session', 'generation'] as const)[(proof / 8) % 3] : null;
    const epoch = wrong === 'epoch' ? record.epoch - 1 : record.epoch;
    const own = record.lease?.sessionId ?? record.endedLease?.sessionId ?? OWNER;
    const mark = Math.max(record.lease?.eventSeq ?? 0, this.answered.get(epoch) ?? 0);
    const first = mark + (number % 7 === 0 ? 2 : number % 5 === 0 ? 0 : 1);
    const report: WorkerReport = {
      sessionId: wrong === 'session' ? other(own) : own,
      generation: wrong === 'generation' ? record.generation - 1 : record.generation,
      epoch,
      answeredThrough: number % 11 === 0 ? 0 : (this.answered.get(epoch) ?? 0),
      events: Array.from({ length: 1 + (count % 3) }, (_, index) => ({
        seq: first + index,
        saying: saying(record, kind + index * 7),
      })),
      chance: kind / 60,
      cause: WORKER,
    };
    const answer = judgeReport(draft, report);
    if (!stale) this.answered.set(epoch, Math.max(this.answered.get(epoch) ?? 0, answer.judgedThrough));
    return { kind: 'report', report, answer };
  }

  private intent(draft: Draft, step: Step): Happened['did'] {
    const intent = this.choose(draft.record, step);
    const guards = this.guards(draft.record, step.choices[2]);
    return { kind: 'intent', intent, guards, verdict: judge(draft, intent, guards) };
  }

  private guards(record: TaskRecord, pick: number): Guards {
    if (pick < 48) return NO_GUARDS;
    const right: Guards = {
      generationId: record.generationId,
      fromStatus: record.status,
      expectedRevision: record.revision,
    };
    if (pick < 54) return right;
    if (pick < 56) return { ...right, generationId: 'generation-0' };
    return pick < 58
      ? { ...right, fromStatus: 'waiting_dependency' }
      : { ...right, expectedRevision: record.revision - 1 };
  }

  private choose(record: TaskRecord, { action, choices }: Step): Intent {
    const [one, two] = choices;
    const proof = this.proof(record, two);
    if (action < 65) return claim({ sessionId: one % 2 === 0 ? OWNER : STRANGER });
    if (action < 72) return this.settlement(record, one, proof);
    if (action < 76) return { kind: 'suspend', lease: one % 2 === 0 ? null : proof, cause: OPERATOR };
    if (action < 83) return this.resumption(record, one);
    if (action < 86)
      return { kind: 'request_cancellation', graceMs: one % 2 === 0 ? null : one * 500, cause: PRODUCER };
    if (action < 87 && two % 2 === 0) return update(one);
    if (action < 87)
      return { kind: 'skip', cause: one % 3 === 0 ? OPERATOR : cause('operator', reason('run.skipped.operator')) };
    if (action < 89) return { kind: 'receipt', lease: proof, acknowledged: one % 2 === 0, cause: WORKER };
    if (action < 92)
      return { kind: 'hand_back', lease: proof, why: one % 2 === 0 ? 'undelivered' : 'forgotten', cause: OPERATOR };
    if (action < 93)
      return { kind: 'release', lease: proof, checkpointJson: one % 2 === 0 ? null : '{}', cause: WORKER };
    if (action < 95) return { kind: 'session_lost', sessionId: one % 2 === 0 ? OWNER : STRANGER, cause: OPERATOR };
    return { kind: 'tick', quietSince: one % 3 === 0 ? this.now : 0, chance: two / 60 };
  }

  private settlement(record: TaskRecord, pick: number, proof: LeaseProof): Intent {
    const outcome = (['completed', 'failed', 'timed_out', 'cancelled'] as const)[pick % 4] ?? 'failed';
    const lease = pick % 3 === 0 ? null : proof;
    const known = this.history[pick % this.history.length];
    const authoritativeEvent: AuthoritativeEvent | null =
      known === undefined || pick % 5 === 0
        ? null
        : { number: known.number, generation: known.generation, at: known.at };
    const ending =
      outcome === 'failed' ? failure(pick % 7 === 0 ? 'broken_input' : 'tool_error', pick % 9 !== 0) : null;
    return settle(outcome, { lease, authoritativeEvent, ending, chance: pick / 60 });
  }

  private resumption(record: TaskRecord, pick: number): Intent {
    this.generations += 1;
    const fresh = `generation-${String(this.generations)}`;
    const named = pick % 6 === 0 ? record.generationId : pick % 2 === 0 ? fresh : null;
    return {
      kind: 'resume',
      newGenerationId: named,
      spareGenerationId: `${fresh}-spare`,
      inputJson: pick % 4 === 0 ? '"more"' : null,
      cause: OPERATOR,
    };
  }

  private proof(record: TaskRecord, pick: number): LeaseProof {
    const own = record.lease?.sessionId ?? OWNER;
    if (pick % 9 === 0) return { epoch: record.epoch, sessionId: other(own) };
    if (pick % 10 === 0) return { epoch: record.epoch - 1, sessionId: own };
    return { epoch: record.epoch, sessionId: pick % 4 === 0 ? null : own };
  }
}

/** A change of what timers and places in the queue come from. */
function update(pick: number): Intent {
  const values = policy({
    priority: pick - 30,
    timeoutMs: pick % 3 === 0 ? null : pick * 5_000 + 1,
    startByMs: pick % 2 === 0 ? null : pick * 2_000 + 1,
    notBeforeAtMs: pick % 3 === 1 ? null : T0 + pick * 1_000,
    progressTimeoutMs: pick % 4 === 0 ? 9_000 : null,
    retry: { maxAttempts: 1 + (pick % 4) },
  });
  const all = ['priority', 'timeout', 'start_by', 'not_before', 'progress_timeout', 'retry'] as const;
  const fields = all.filter((_, index) => (pick + index) % 3 !== 0);
  return { kind: 'update_policy', fields, values, cause: OPERATOR };
}

function other(sessionId: string): string {
  return sessionId === OWNER ? STRANGER : OWNER;
}

/** Three times of four what moves the attempt on; else anything, the illegal included. */
function saying(record: TaskRecord, pick: number): WorkerSaying {
  if (pick % 4 === 0) {
    const all = Object.values(SAYINGS);
    const any = all[Math.floor(pick / 4) % all.length] ?? SAYINGS.checkpoint;
    if (any.kind !== 'failed') return any;
    return { ...any, ending: failure('tool_error', pick % 8 !== 0), retryAfterMs: pick % 3 === 0 ? 2_000 : null };
  }
  switch (record.lease?.attemptState) {
    case 'submitted':
      return pick % 7 === 0 ? SAYINGS.failed : SAYINGS.accepted;
    case 'accepted':
      return SAYINGS.started;
    case 'blocked':
      return pick % 3 === 0 ? SAYINGS.progress : SAYINGS.started;
    default: {
      const work = [
        SAYINGS.progress,
        SAYINGS.output,
        SAYINGS.blocked,
        SAYINGS.failed,
        SAYINGS.completed,
        SAYINGS.progress,
      ];
      return work[pick % work.length] ?? SAYINGS.progress;
    }
  }
}
