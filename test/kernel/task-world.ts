// One task and its two workers, for every kernel test: literal values with a use, and the steps that take a
// draft from its admission to wherever a test wants it. Every step goes through the real kernel.

import { resolvePolicy, type TaskPolicy, type TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import type { ActorType, Cause, Reason } from '../../src/kernel/cause.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import {
  NO_GUARDS,
  type ClaimIntent,
  type Intent,
  type SettleIntent,
  type WorkerEvent,
  type WorkerReport,
  type WorkerSaying,
} from '../../src/kernel/intent.js';
import type { Admission, Ending, TaskRecord } from '../../src/kernel/record.js';
import { malformed } from '../../src/kernel/refusal.js';
import { NO_ENDING } from '../../src/kernel/settlement.js';
import type { SettledStatus } from '../../src/kernel/status.js';
import { judgeReport, type ReportAnswer } from '../../src/kernel/worker-report.js';

/** Epoch ms at which every task of these tests is admitted. */
export const T0 = 1_700_000_000_000;
export const OWNER = 'session-a';
export const STRANGER = 'session-b';
export const SESSION_TTL_MS = 30_000;
export const ACCEPT_TIMEOUT_MS = 5_000;
export const TASK_ID = 'order-17';

export function cause(type: ActorType, reason: Reason | null = null): Cause {
  return {
    actor: { type, id: `${type}-1` },
    principal: 'tester',
    source: 'rpc',
    reason,
    causation: null,
    authoritativeAt: null,
  };
}

export const PRODUCER = cause('producer');
export const OPERATOR = cause('operator');
export const WORKER = cause('worker');

/** A policy with nothing but defaults, no jitter, and what the test says. */
export function policy(input: TaskPolicyInput = {}): TaskPolicy {
  const resolved = resolvePolicy({ ...input, retry: { jitter: 0, ...input.retry } });
  if (!resolved.ok) throw new Error(`the test's policy is malformed: ${resolved.refusal.field}`);
  return resolved.value;
}

export function admission(input: TaskPolicyInput = {}): Admission {
  return {
    taskId: TASK_ID,
    namespace: 'default',
    queue: 'main',
    idempotencyKey: 'key-17',
    application: {
      actionKind: 'agent',
      argsJson: '{}',
      executionTarget: 'host',
      requiredCapabilities: [],
      libraryRef: null,
      libraryContentHash: null,
    },
    applicationHash: 'sha256:00',
    policy: policy(input),
    source: 'rpc',
    scheduleId: null,
    actor: PRODUCER.actor,
    principal: 'tester',
    createdAt: T0,
    traceContext: {},
  };
}

export function failure(
  code = 'tool_error',
  retryable = true,
): Ending & { readonly error: NonNullable<Ending['error']> } {
  return { ...NO_ENDING, error: { code, message: 'it broke', retryable, detailsJson: null } };
}

export function claim(overrides: Partial<ClaimIntent> = {}): ClaimIntent {
  return {
    kind: 'claim',
    sessionId: OWNER,
    worker: 'worker-1',
    sessionTtlMs: SESSION_TTL_MS,
    acceptTimeoutMs: ACCEPT_TIMEOUT_MS,
    cause: cause('worker'),
    ...overrides,
  };
}

export function settle(outcome: SettledStatus, overrides: Partial<SettleIntent> = {}): SettleIntent {
  return {
    kind: 'settle',
    outcome,
    resultJson: outcome === 'completed' ? '{"pages":3}' : null,
    ending: outcome === 'failed' ? failure() : null,
    lease: null,
    authoritativeEvent: null,
    chance: 0.5,
    cause: OPERATOR,
    ...overrides,
  };
}

/** Something to say, of each kind, where what is said does not matter. */
export const SAYINGS: { readonly [Kind in WorkerSaying['kind']]: Extract<WorkerSaying, { kind: Kind }> } = {
  accepted: { kind: 'accepted' },
  started: { kind: 'started' },
  progress: { kind: 'progress', progress: 0.5, message: 'half' },
  output: { kind: 'output', output: { outputJson: '"page"', binaryBase64: null, contentType: null, truncated: false } },
  blocked: { kind: 'blocked', reason: 'waiting for an index' },
  checkpoint: { kind: 'checkpoint', checkpointJson: '{"next":2}' },
  completed: { kind: 'completed', resultJson: '{"pages":3}', ending: null },
  failed: { kind: 'failed', ending: failure(), retryAfterMs: null },
  cancelled: { kind: 'cancelled', ending: null, reason: null },
  timed_out: { kind: 'timed_out', ending: null },
  suspended: { kind: 'suspended', reason: null },
  malformed: { kind: 'malformed', refusal: malformed('progress', 'must be from 0 to 1') },
};

/** A draft that tests walk step by step. Time is what they say, and each step must be applied. */
export class TaskWorld {
  private constructor(
    public draft: Draft,
    readonly admission: Admission,
  ) {}

  static admit(input: TaskPolicyInput = {}): TaskWorld {
    const admitted = admission(input);
    const draft = Draft.admit(admitted, 'generation-1', admitted.policy.notBeforeAtMs, PRODUCER);
    return new TaskWorld(draft, admitted);
  }

  static of(record: TaskRecord, now: number): TaskWorld {
    return new TaskWorld(Draft.of(record, now), record.admission);
  }

  get record(): TaskRecord {
    return this.draft.record;
  }

  /** The draft's events since it was last opened. */
  get eventTypes(): string[] {
    return this.draft.events.map((event) => event.type);
  }

  /** A fresh draft on the record as it stands: what was decided until now is committed. */
  at(now: number): this {
    this.draft = Draft.of(this.record, now);
    return this;
  }

  /** Another world that goes on from the record as it stands, leaving this one alone. */
  fork(now: number): TaskWorld {
    return TaskWorld.of(this.record, now);
  }

  apply(intent: Intent): this {
    const verdict = judge(this.draft, intent, NO_GUARDS);
    if (verdict.kind !== 'applied') throw new Error(`${intent.kind} was ${JSON.stringify(verdict)}`);
    return this;
  }

  claim(overrides: Partial<ClaimIntent> = {}): this {
    return this.apply(claim(overrides));
  }

  /** The lease holder says these things, each of them legal. */
  say(...sayings: (WorkerSaying | WorkerSaying['kind'])[]): this {
    const { answer } = this.hear(...sayings);
    if (answer.refused.length > 0) throw new Error(JSON.stringify(answer.refused));
    return this;
  }

  /** The lease holder says these things, numbered on from its mark; what was refused is the caller's to look at. */
  hear(...sayings: (WorkerSaying | WorkerSaying['kind'])[]): { readonly answer: ReportAnswer } {
    const first = (this.record.lease?.eventSeq ?? 0) + 1;
    const events = sayings.map((saying, index) => ({
      seq: first + index,
      saying: typeof saying === 'string' ? SAYINGS[saying] : saying,
    }));
    return { answer: this.hearReport(this.report(events)) };
  }

  hearReport(report: WorkerReport): ReportAnswer {
    return judgeReport(this.draft, report);
  }

  report(events: readonly WorkerEvent[], overrides: Partial<WorkerReport> = {}): WorkerReport {
    return {
      sessionId: this.record.lease?.sessionId ?? OWNER,
      generation: this.record.generation,
      epoch: this.record.epoch,
      answeredThrough: 0,
      events,
      chance: 0.5,
      cause: WORKER,
      ...overrides,
    };
  }

  /** The claim is not accepted and comes back; each time the queue has it again at `now`. */
  handBack(why: 'undelivered' | 'forgotten' = 'undelivered'): this {
    return this.apply({ kind: 'hand_back', lease: this.proof(), why, cause: cause('reaper') });
  }

  tick(quietSince = 0, chance = 0.5): this {
    return this.apply({ kind: 'tick', quietSince, chance });
  }

  requestCancel(graceMs: number | null = null): this {
    return this.apply({ kind: 'request_cancellation', graceMs, cause: PRODUCER });
  }

  proof(): { readonly epoch: number; readonly sessionId: string } {
    return { epoch: this.record.epoch, sessionId: this.record.lease?.sessionId ?? OWNER };
  }
}
