// A small world to be explored whole: one task, two sessions that remember the claim they last had, two generations,
// reports that arrive late or twice, and a clock that jumps to whatever is due next.

import type { CancellationPolicy } from '../../src/kernel/admission/policy.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import { NO_GUARDS, type Intent, type WorkerReport } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { nextDueAt } from '../../src/kernel/timers.js';
import { judgeReport } from '../../src/kernel/worker-report.js';
import { Invariants } from './history-invariants.js';
import type { Happened } from './history-walk.js';
import {
  OPERATOR,
  OWNER,
  PRODUCER,
  SAYINGS,
  STRANGER,
  WORKER,
  cause,
  claim,
  failure,
  policy,
  settle,
} from './task-world.js';

/** What a session believes that it holds, and the number it would give its next event. */
interface Belief {
  readonly generation: number;
  readonly epoch: number;
  readonly nextSeq: number;
}

export interface Node {
  readonly record: TaskRecord;
  readonly now: number;
  readonly beliefs: Readonly<Record<string, Belief>>;
  readonly invariants: Invariants;
}

interface Move {
  readonly name: string;
  readonly now?: number;
  readonly intent?: Intent;
  readonly report?: WorkerReport;
}

const SESSIONS = [OWNER, STRANGER] as const;
const GENERATIONS = 2;

export function firstNode(
  cancellationPolicy: CancellationPolicy,
  admit: (policy: CancellationPolicy) => TaskRecord,
): Node {
  const record = admit(cancellationPolicy);
  return { record, now: record.updatedAt, beliefs: {}, invariants: new Invariants() };
}

/**
 * What makes two nodes the same: everything that a decision reads but for the exact times, numbers and ids, which only
 * grow and are compared for equality alone.
 */
export function keyOf({ record, beliefs }: Node): string {
  const { lease, cancellation } = record;
  const isDue = (at: number | null): boolean => at !== null;
  return JSON.stringify([
    record.status,
    record.generation,
    record.aep,
    Math.min(record.attempt, record.policy.retry.maxAttempts),
    record.handBacks,
    record.everClaimed,
    record.ownerStopped,
    isDue(record.startedAt),
    isDue(record.notBeforeAt),
    lease && [lease.sessionId, lease.attemptState, isDue(lease.acceptedAt)],
    cancellation && [
      isDue(cancellation.graceEndsAt),
      isDue(cancellation.deliveredAt),
      isDue(cancellation.acknowledgedAt),
    ],
    SESSIONS.map((session) => beliefs[session] && beliefs[session].epoch === record.lease?.epoch),
  ]);
}

export function movesFrom(node: Node): Move[] {
  const { record } = node;
  const due = nextDueAt(record);
  const tick = (quietSince: number): Intent => ({ kind: 'tick', quietSince, chance: 0.5 });
  const resume = (newGenerationId: string | null): Intent => ({
    kind: 'resume',
    newGenerationId,
    spareGenerationId: `generation-${String(record.generation + 1)}`,
    inputJson: null,
    cause: OPERATOR,
  });
  const ends = record.generation < GENERATIONS || record.status === 'suspended';
  const now = due === null ? node.now : Math.max(node.now, due);
  return [
    { name: 'tick', now, intent: tick(0) },
    { name: 'tick after a pause', now, intent: tick(now) },
    { name: 'skip', intent: { kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) } },
    { name: 'cancel', intent: { kind: 'request_cancellation', graceMs: null, cause: PRODUCER } },
    { name: 'cancel with grace', intent: { kind: 'request_cancellation', graceMs: 500, cause: PRODUCER } },
    { name: 'delay', intent: update(node.now + 700) },
    { name: 'end the delay', intent: update(null) },
    { name: 'hold', intent: { kind: 'suspend', lease: null, cause: OPERATOR } },
    { name: 'fail from outside', intent: settle('failed') },
    { name: 'time out from outside', intent: settle('timed_out') },
    { name: 'complete from outside', intent: settle('completed') },
    ...(ends ? [{ name: 'resume', intent: resume(null) }] : []),
    ...(record.generation < GENERATIONS ? [{ name: 'resume anew', intent: resume('named') }] : []),
    ...SESSIONS.flatMap((session) => movesOf(node, session)),
  ];
}

function update(notBeforeAtMs: number | null): Intent {
  return { kind: 'update_policy', fields: ['not_before'], values: policy({ notBeforeAtMs }), cause: OPERATOR };
}

function movesOf(node: Node, sessionId: string): Move[] {
  const lost: Move = { name: `${sessionId} is lost`, intent: { kind: 'session_lost', sessionId, cause: OPERATOR } };
  const take: Move = { name: `${sessionId} claims`, intent: claim({ sessionId }) };
  const belief = node.beliefs[sessionId];
  if (belief === undefined) return [take, lost];
  const lease = { epoch: belief.epoch, sessionId };
  const proof = { number: node.record.lastEvent, generation: belief.generation, at: node.now };
  const early = { number: 1, generation: 1, at: node.now };
  const intents: readonly Intent[] = [
    settle('completed', { lease, cause: WORKER, authoritativeEvent: proof }),
    settle('completed', { lease, cause: WORKER, authoritativeEvent: early }),
    settle('failed', { lease, cause: WORKER, ending: failure('x', false) }),
    settle('cancelled', { lease, cause: WORKER }),
    { kind: 'suspend', lease, cause: WORKER },
    { kind: 'receipt', lease, acknowledged: false, cause: WORKER },
    { kind: 'receipt', lease, acknowledged: true, cause: WORKER },
    { kind: 'hand_back', lease, why: 'undelivered', cause: OPERATOR },
    { kind: 'hand_back', lease, why: 'forgotten', cause: OPERATOR },
    { kind: 'release', lease, checkpointJson: null, cause: WORKER },
  ];
  const reports = Object.values(SAYINGS).map((saying): Move => {
    const report = reportOf(belief, sessionId, { seq: belief.nextSeq, saying });
    return { name: `${sessionId} says ${saying.kind}`, report };
  });
  const again = reportOf(belief, sessionId, { seq: belief.nextSeq - 1, saying: SAYINGS.completed });
  const ahead = reportOf(belief, sessionId, { seq: belief.nextSeq + 1, saying: SAYINGS.completed });
  return [
    take,
    lost,
    ...intents.map((intent) => ({ name: `${sessionId} asks ${intent.kind}`, intent })),
    ...reports,
    { name: `${sessionId} repeats itself`, report: again },
    { name: `${sessionId} runs ahead`, report: ahead },
  ];
}

function reportOf(belief: Belief, sessionId: string, event: WorkerReport['events'][number]): WorkerReport {
  const { generation, epoch, nextSeq } = belief;
  return { sessionId, generation, epoch, answeredThrough: nextSeq - 1, events: [event], chance: 0.5, cause: WORKER };
}

/** Where a move leads, its invariants checked on the way. */
export function follow(node: Node, move: Move): Node {
  const now = move.now ?? node.now;
  const draft = Draft.of(node.record, now);
  const did = act(draft, move);
  const happened: Happened = { before: node.record, after: draft.record, events: draft.events, now, did };
  const invariants = node.invariants.fork();
  invariants.check(happened);
  return { record: draft.record, now, beliefs: believed(node, happened), invariants };
}

function act(draft: Draft, { intent, report }: Move): Happened['did'] {
  if (report !== undefined) return { kind: 'report', report, answer: judgeReport(draft, report) };
  if (intent === undefined) throw new Error('a move is an intent or a report');
  return { kind: 'intent', intent, guards: NO_GUARDS, verdict: judge(draft, intent) };
}

function believed({ beliefs }: Node, { after, did }: Happened): Node['beliefs'] {
  if (did.kind === 'report') {
    const { sessionId, generation, epoch } = did.report;
    const nextSeq = Math.max(beliefs[sessionId]?.nextSeq ?? 1, did.answer.judgedThrough + 1);
    return { ...beliefs, [sessionId]: { generation, epoch, nextSeq } };
  }
  if (did.intent.kind !== 'claim' || did.verdict.kind !== 'applied') return beliefs;
  const { generation, epoch } = after;
  return { ...beliefs, [did.intent.sessionId]: { generation, epoch, nextSeq: 1 } };
}
