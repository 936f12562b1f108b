// The intents that the decision table judges in every state, and how one cell's verdict is written down.

import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import type { Intent, LeaseProof, TickIntent } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { timersOf, type TimerKind } from '../../src/kernel/timers.js';
import {
  ACCEPT_TIMEOUT_MS,
  OPERATOR,
  OWNER,
  PRODUCER,
  STRANGER,
  T0,
  WORKER,
  cause,
  claim,
  failure,
  policy,
  settle,
} from './task-world.js';

interface Asked {
  readonly intent: Intent;
  /** Epoch ms; absent: when the record last changed, so that no timer is due. */
  readonly now?: number;
}

type Ask = (record: TaskRecord) => Asked;

function holder(record: TaskRecord): LeaseProof {
  return { epoch: record.epoch, sessionId: record.lease?.sessionId ?? OWNER };
}

function stranger(record: TaskRecord): LeaseProof {
  return { epoch: record.epoch, sessionId: STRANGER };
}

const asked =
  (intent: Intent): Ask =>
  () => ({ intent });

const askedBy =
  (proof: (record: TaskRecord) => LeaseProof, make: (lease: LeaseProof) => Intent): Ask =>
  (record) => ({ intent: make(proof(record)) });

const receipt =
  (acknowledged: boolean) =>
  (lease: LeaseProof): Intent => ({
    kind: 'receipt',
    lease,
    acknowledged,
    cause: WORKER,
  });

const handBack =
  (why: 'undelivered' | 'forgotten') =>
  (lease: LeaseProof): Intent => ({
    kind: 'hand_back',
    lease,
    why,
    cause: cause('reaper'),
  });

const release =
  (checkpointJson: string | null) =>
  (lease: LeaseProof): Intent => ({
    kind: 'release',
    lease,
    checkpointJson,
    cause: WORKER,
  });

function resume(newGenerationId: string | null, inputJson: string | null = null): Intent {
  return { kind: 'resume', newGenerationId, spareGenerationId: 'spare', inputJson, cause: OPERATOR };
}

function tick(quietSince: number): TickIntent {
  return { kind: 'tick', quietSince, chance: 0.5 };
}

/** Asks when this timer is due; a record without it is asked when nothing is. */
const tickAt =
  (kind: TimerKind, quiet = false): Ask =>
  (record) => {
    const now = timersOf(record).find((timer) => timer.kind === kind)?.dueAt ?? record.updatedAt;
    return { intent: tick(quiet ? now : 0), now };
  };

const ASKS = {
  claim: asked(claim({ acceptTimeoutMs: ACCEPT_TIMEOUT_MS })),
  completed_by_holder: askedBy(holder, (lease) => settle('completed', { lease, cause: WORKER })),
  completed_with_proof: (record: TaskRecord): Asked => {
    const authoritativeEvent = { number: 1, generation: record.generation, at: record.generationStartedAt };
    return { intent: settle('completed', { lease: holder(record), cause: WORKER, authoritativeEvent }) };
  },
  completed_without_lease: asked(settle('completed')),
  completed_by_stranger: askedBy(stranger, (lease) => settle('completed', { lease })),
  failed_by_holder: askedBy(holder, (lease) => settle('failed', { lease, cause: WORKER })),
  failed_for_good_by_holder: askedBy(holder, (lease) =>
    settle('failed', { lease, cause: WORKER, ending: failure('tool_error', false) }),
  ),
  failed_with_listed_code: askedBy(holder, (lease) =>
    settle('failed', { lease, cause: WORKER, ending: failure('broken_input', true) }),
  ),
  failed_without_lease: asked(settle('failed')),
  failed_by_stranger: askedBy(stranger, (lease) => settle('failed', { lease })),
  timed_out_by_holder: askedBy(holder, (lease) => settle('timed_out', { lease, cause: WORKER })),
  timed_out_without_lease: asked(settle('timed_out')),
  timed_out_by_stranger: askedBy(stranger, (lease) => settle('timed_out', { lease })),
  cancelled_by_holder: askedBy(holder, (lease) => settle('cancelled', { lease, cause: WORKER })),
  cancelled_without_lease: asked(settle('cancelled')),
  cancelled_by_stranger: askedBy(stranger, (lease) => settle('cancelled', { lease })),
  suspend_by_holder: askedBy(holder, (lease) => ({ kind: 'suspend', lease, cause: WORKER })),
  suspend_by_operator: asked({ kind: 'suspend', lease: null, cause: OPERATOR }),
  suspend_by_stranger: askedBy(stranger, (lease) => ({ kind: 'suspend', lease, cause: WORKER })),
  resume: asked(resume(null)),
  resume_with_input: asked(resume(null, '"go on"')),
  resume_with_new_id: asked(resume('generation-2')),
  resume_with_current_id: (record: TaskRecord): Asked => ({ intent: resume(record.generationId) }),
  cancel: asked({ kind: 'request_cancellation', graceMs: null, cause: PRODUCER }),
  cancel_with_grace: asked({ kind: 'request_cancellation', graceMs: 10_000, cause: PRODUCER }),
  skip: asked({ kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) }),
  skip_without_reason: asked({ kind: 'skip', cause: OPERATOR }),
  update_priority: asked({
    kind: 'update_policy',
    fields: ['priority'],
    values: policy({ priority: 5 }),
    cause: OPERATOR,
  }),
  update_start: asked({
    kind: 'update_policy',
    fields: ['not_before'],
    values: policy({ notBeforeAtMs: T0 + 3_600_000 }),
    cause: OPERATOR,
  }),
  delivered: askedBy(holder, receipt(false)),
  delivered_to_stranger: askedBy(stranger, receipt(false)),
  acknowledged: askedBy(holder, receipt(true)),
  acknowledged_by_stranger: askedBy(stranger, receipt(true)),
  undelivered: askedBy(holder, handBack('undelivered')),
  undelivered_to_stranger: askedBy(stranger, handBack('undelivered')),
  forgotten: askedBy(holder, handBack('forgotten')),
  forgotten_by_stranger: askedBy(stranger, handBack('forgotten')),
  release: askedBy(holder, release(null)),
  release_with_checkpoint: askedBy(holder, release('{"next":2}')),
  release_by_stranger: askedBy(stranger, release(null)),
  session_lost: asked({ kind: 'session_lost', sessionId: OWNER, cause: cause('reaper') }),
  other_session_lost: asked({ kind: 'session_lost', sessionId: STRANGER, cause: cause('reaper') }),
  tick_nothing_due: asked(tick(0)),
  tick_total_deadline: tickAt('total_deadline'),
  tick_start_by: tickAt('start_by'),
  tick_cancel_grace: tickAt('cancel_grace'),
  tick_attempt_time_out: tickAt('attempt_time_out'),
  tick_no_progress: tickAt('no_progress'),
  tick_no_progress_quiet: tickAt('no_progress', true),
  tick_accept: tickAt('accept'),
  tick_accept_quiet: tickAt('accept', true),
  tick_retry: tickAt('retry'),
  tick_not_before: tickAt('not_before'),
} satisfies Record<string, Ask>;

export type IntentName = keyof typeof ASKS;

export const INTENT_NAMES = Object.keys(ASKS) as readonly IntentName[];

/**
 * What judging comes to, in one line: `refused REASON`, `conflict GUARD`, `unchanged`, or for what was applied
 * `status reason.code < events`, the events without their prefix and inferred ones in parentheses.
 */
export type Cell = `refused ${string}` | `conflict ${string}` | 'unchanged' | `${string} < ${string}`;

export type Row = Readonly<Record<IntentName, Cell>>;

export function intentIn(record: TaskRecord, name: IntentName): Intent {
  return ASKS[name](record).intent;
}

export function judgedCell(record: TaskRecord, intentName: IntentName): Cell {
  const { intent, now } = ASKS[intentName](record);
  const draft = Draft.of(record, now ?? record.updatedAt);
  const verdict = judge(draft, intent);
  switch (verdict.kind) {
    case 'refused':
      return `refused ${verdict.refusal.reason}`;
    case 'conflict':
      return `conflict ${verdict.guard}`;
    case 'unchanged':
      return 'unchanged';
    case 'applied':
      return appliedCell(draft);
  }
}

function appliedCell(draft: Draft): Cell {
  const events = draft.events.map((event) => {
    const name = event.type.replace(/^(reeve\.)?task\./, '');
    return event.inferred ? `(${name})` : name;
  });
  return `${draft.record.status} ${draft.record.reason?.code ?? '-'} < ${events.join(' ')}`;
}
