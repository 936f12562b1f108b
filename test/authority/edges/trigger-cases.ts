// What takes an edge of the table beside what edge-cases.ts has for it: each timer, the end of a dependency or of a
// parent, an operator's hold (lifecycle.md section 3, the column "by"). The same is done with them.

import type { TaskPolicyInput } from '../../../src/kernel/admission/policy.js';
import type { EdgeIntent } from '../../../src/kernel/edges.js';
import type { Intent } from '../../../src/kernel/intent.js';
import type { TaskStatus } from '../../../src/kernel/status.js';
import { type Arrive, EDGE_CASES, type EdgeCase, later, running, unaccepted } from './edge-cases.js';
import { Situation, TOTAL_MS, cancel, hold, settle, tick, upstreamOf } from './situations.js';

const SPAN_MS = 1_000;
/** Longer than any accept time-out and any pause that is excused. */
const LONG_MS = 60_000;

const startedWith =
  (policy: TaskPolicyInput): Arrive =>
  async (world, name) =>
    (await Situation.admit(world, name, policy)).started();
const askedWithGrace: Arrive = async (world, name) =>
  (await running(world, name)).applied({ ...cancel, graceMs: SPAN_MS });
const waitingWith =
  (onUnsatisfied: 'skip' | 'fail' | 'cancel'): Arrive =>
  (world, name) =>
    Situation.waiting(world, name, { onUnsatisfied });
/** A running child; its parent does not run. */
const child: Arrive = async (world, name) => {
  await Situation.admit(world, parentOf(name));
  const { generationId } = await world.stored(parentOf(name));
  const parent = { taskId: parentOf(name), generationId, attached: true };
  return (await Situation.admit(world, name, { parent })).started();
};

function parentOf(name: string): string {
  return `${name}.parent`;
}

type Row = readonly [when: string, to: TaskStatus, by: EdgeIntent, arrive: Arrive, intent: Intent];

function runs([when, to, by, arrive, intent]: Row): EdgeCase {
  return { from: 'running', to, by, when, arrive, take: () => ({ intent }) };
}

function waits([when, to, by, arrive, intent]: Row): EdgeCase {
  const take = ({ taskId }: Situation) => ({ on: upstreamOf(taskId), intent });
  return { from: 'waiting_dependency', to, by, when, arrive, take };
}

function lives([when, to, by, arrive, intent]: Row): EdgeCase {
  return { ...runs([when, to, by, arrive, intent]), take: ({ taskId }) => ({ on: parentOf(taskId), intent }) };
}

const attemptOver = (maxAttempts: number): Arrive =>
  later(SPAN_MS, startedWith({ attemptTimeoutMs: SPAN_MS, retry: { maxAttempts } }));
const silent = later(LONG_MS, startedWith({ progressTimeoutMs: SPAN_MS }));

/** In order: how it is called, what it becomes, by which intent of the table, how it gets there, what does it. */
const TRIGGERS: readonly EdgeCase[] = [
  runs(['operator', 'suspended', 'suspend', running, hold]),
  runs(['attempt time-out', 'retry_wait', 'retry', attemptOver(3), tick]),
  runs(['time-out of the last attempt', 'failed', 'retry', attemptOver(1), tick]),
  runs(['no progress', 'retry_wait', 'retry', silent, tick]),
  runs(['not accepted', 'retry_wait', 'hand_back', later(LONG_MS, unaccepted), tick]),
  runs(['grace', 'cancelled', 'settle', later(SPAN_MS, askedWithGrace), tick]),
  waits(['on_unsatisfied skip', 'skipped', 'skip', waitingWith('skip'), settle('failed')]),
  waits(['on_unsatisfied fail', 'failed', 'settle', waitingWith('fail'), settle('failed')]),
  waits(['on_unsatisfied cancel', 'cancelled', 'cancel', waitingWith('cancel'), settle('failed')]),
  lives(['parent failed', 'failed', 'settle', child, settle('failed')]),
  lives(['parent timed out', 'timed_out', 'settle', later(TOTAL_MS, child), tick]),
  lives(['parent cancelled', 'cancelled', 'settle', child, cancel]),
];

/** All that is raced, crashed and repeated. */
export const ALL_CASES: readonly EdgeCase[] = [...EDGE_CASES, ...TRIGGERS];
