// Every way of taking every edge of the table (lifecycle.md section 3; src/kernel/edges.ts): how a task gets there, and
// the intent that takes it. What is done with this list is in edge-races.test.ts and edge-crashes.test.ts.

import type { Intent } from '../../../src/kernel/intent.js';
import type { EdgeIntent } from '../../../src/kernel/edges.js';
import { MAX_HAND_BACKS } from '../../../src/kernel/retry.js';
import type { TaskStatus } from '../../../src/kernel/status.js';
import type { World } from '../../support/world.js';
import {
  RETRY_MS,
  Situation,
  TOTAL_MS,
  asHolder,
  cancel,
  claimBy,
  hold,
  resume,
  settle,
  skip,
  tick,
  upstreamOf,
} from './situations.js';

export interface EdgeCase {
  readonly from: TaskStatus | null;
  readonly to: TaskStatus;
  readonly by: EdgeIntent;
  /** What brings it about, where several things do that the table has one name for. */
  readonly when?: string;
  /** Where it is taken from. Absent for admissions. */
  readonly arrive: (world: World, name: string) => Promise<Situation>;
  /** What takes it: an intent on the task, or on the one, named by its id, that it waits for or lives under. */
  readonly take: (situation: Situation) => { readonly on?: string; readonly intent: Intent };
}

export type Arrive = EdgeCase['arrive'];
type Take = (situation: Situation) => Intent;

const queued: Arrive = (world, name) => Situation.admit(world, name);
const waiting: Arrive = (world, name) => Situation.waiting(world, name);
export const running: Arrive = async (world, name) => (await Situation.admit(world, name)).started();
const last: Arrive = async (world, name) =>
  (await Situation.admit(world, name, { retry: { maxAttempts: 1 } })).started();
export const unaccepted: Arrive = async (world, name) => (await Situation.admit(world, name)).running();
const asked: Arrive = async (world, name) => (await running(world, name)).applied(cancel);
const fenced: Arrive = async (world, name) => {
  const situation = await Situation.admit(world, name, { cancellationPolicy: 'FENCED' });
  return (await situation.started()).applied(cancel);
};
const unacceptedAndAsked: Arrive = async (world, name) => (await unaccepted(world, name)).applied(cancel);
const retrying: Arrive = async (world, name) => {
  const situation = await running(world, name);
  return situation.applied(asHolder(situation).settles('failed'));
};
const suspended: Arrive = async (world, name) => (await queued(world, name)).applied(hold);
const heldWaiting: Arrive = async (world, name) => (await waiting(world, name)).applied(hold);
const circled: Arrive = async (world, name) => {
  const situation = await unaccepted(world, name);
  for (let epoch = 1; epoch < MAX_HAND_BACKS; epoch++) {
    await situation.applied(asHolder(situation, epoch).handsBack);
    const { status, retryAt } = await world.stored(name);
    if (status === 'retry_wait') await situation.pass((retryAt ?? 0) - world.clock.nowMs()).applied(tick);
    await situation.claimed();
  }
  return situation;
};
const ended =
  (how: Intent): Arrive =>
  async (world, name) =>
    (await queued(world, name)).applied(how);
const completed: Arrive = async (world, name) => {
  const situation = await running(world, name);
  return situation.applied(asHolder(situation).settles('completed'));
};

export const later =
  (ms: number, arrive: Arrive, ...then: readonly Intent[]): Arrive =>
  async (world, name) =>
    (await arrive(world, name)).pass(ms).applied(...then);
const always =
  (intent: Intent): Take =>
  () =>
    intent;
const holder =
  (pick: (intents: ReturnType<typeof asHolder>) => Intent): Take =>
  (situation) =>
    pick(asHolder(situation));

function edge(from: TaskStatus, to: TaskStatus, by: EdgeIntent, arrive: Arrive, take: Take): EdgeCase {
  return { from, to, by, arrive, take: (situation) => ({ intent: take(situation) }) };
}

/** From a status in which nobody holds it, all that ends it. */
function endsOf(from: TaskStatus, arrive: Arrive): readonly EdgeCase[] {
  return [
    edge(from, 'cancelled', 'cancel', arrive, always(cancel)),
    edge(from, 'timed_out', 'deadline', later(TOTAL_MS, arrive), always(tick)),
    edge(from, 'failed', 'settle', arrive, always(settle('failed'))),
  ];
}

const NEXT = always(resume('the next generation'));

export const EDGE_CASES: readonly EdgeCase[] = [
  edge('queued', 'running', 'claim', sessionFor(queued), ({ sessionId }) => claimBy(sessionId)),
  edge('queued', 'skipped', 'skip', queued, always(skip)),
  edge('queued', 'suspended', 'suspend', queued, always(hold)),
  ...endsOf('queued', queued),
  {
    ...edge('waiting_dependency', 'queued', 'dependencies_met', upstreamRuns(waiting), always(cancel)),
    take: ({ world, taskId }) => {
      const upstream = new Situation(world, upstreamOf(taskId));
      return { on: upstream.taskId, intent: asHolder(upstream).settles('completed') };
    },
  },
  edge('waiting_dependency', 'skipped', 'skip', waiting, always(skip)),
  edge('waiting_dependency', 'suspended', 'suspend', waiting, always(hold)),
  ...endsOf('waiting_dependency', waiting),
  edge(
    'running',
    'completed',
    'settle',
    running,
    holder(({ settles }) => settles('completed')),
  ),
  edge(
    'running',
    'failed',
    'settle',
    running,
    holder(({ failsForGood }) => failsForGood),
  ),
  edge(
    'running',
    'failed',
    'retry',
    last,
    holder(({ settles }) => settles('failed')),
  ),
  edge(
    'running',
    'failed',
    'lease_lost',
    last,
    holder(({ isLost }) => isLost),
  ),
  edge('running', 'failed', 'hand_back', circled, (situation) => asHolder(situation, MAX_HAND_BACKS).handsBack),
  edge(
    'running',
    'timed_out',
    'settle',
    running,
    holder(({ settles }) => settles('timed_out')),
  ),
  edge('running', 'timed_out', 'deadline', later(TOTAL_MS, running), always(tick)),
  edge(
    'running',
    'cancelled',
    'settle',
    asked,
    holder(({ settles }) => settles('cancelled')),
  ),
  edge(
    'running',
    'cancelled',
    'retry',
    asked,
    holder(({ settles }) => settles('failed')),
  ),
  edge(
    'running',
    'cancelled',
    'lease_lost',
    asked,
    holder(({ isLost }) => isLost),
  ),
  edge(
    'running',
    'cancelled',
    'hand_back',
    unacceptedAndAsked,
    holder(({ handsBack }) => handsBack),
  ),
  edge(
    'running',
    'cancelled',
    'release',
    asked,
    holder(({ releases }) => releases),
  ),
  edge('running', 'cancelled', 'deadline', later(TOTAL_MS, fenced), always(tick)),
  edge(
    'running',
    'retry_wait',
    'retry',
    running,
    holder(({ settles }) => settles('failed')),
  ),
  edge(
    'running',
    'retry_wait',
    'lease_lost',
    running,
    holder(({ isLost }) => isLost),
  ),
  edge(
    'running',
    'retry_wait',
    'hand_back',
    unaccepted,
    holder(({ handsBack }) => handsBack),
  ),
  edge(
    'running',
    'retry_wait',
    'release',
    running,
    holder(({ releases }) => releases),
  ),
  edge(
    'running',
    'suspended',
    'suspend',
    running,
    holder(({ suspends }) => suspends),
  ),
  edge('retry_wait', 'queued', 'retry_due', later(RETRY_MS, retrying), always(tick)),
  edge('retry_wait', 'suspended', 'suspend', retrying, always(hold)),
  ...endsOf('retry_wait', retrying),
  edge('suspended', 'queued', 'resume', suspended, always(resume())),
  edge('suspended', 'queued', 'new_generation', suspended, NEXT),
  edge('suspended', 'waiting_dependency', 'resume', heldWaiting, always(resume())),
  ...endsOf('suspended', suspended),
  edge('completed', 'queued', 'new_generation', completed, NEXT),
  edge('failed', 'queued', 'new_generation', ended(settle('failed')), NEXT),
  edge('timed_out', 'queued', 'new_generation', later(TOTAL_MS, queued, tick), NEXT),
  edge('cancelled', 'queued', 'new_generation', ended(cancel), NEXT),
  edge('skipped', 'queued', 'new_generation', ended(skip), NEXT),
];

/** Edges that an admission takes: they have no task to begin from, and a key of their own. */
export const ADMISSIONS = [
  { from: null, to: 'queued', by: 'submit', waits: false },
  { from: 'queued', to: 'waiting_dependency', by: 'hold', waits: true },
] as const;

export function nameOf({ from, to, by, when }: { from: string | null; to: string; by: string; when?: string }): string {
  return `${from ?? 'nothing'} to ${to} by ${by}${when === undefined ? '' : ` (${when})`}`;
}

/** A session is there, and has claimed nothing. */
function sessionFor(arrive: Arrive): Arrive {
  return async (world, name) => {
    const { sessionId } = await (await Situation.admit(world, `${name}.other`)).running();
    const situation = await arrive(world, name);
    situation.sessionId = sessionId;
    return situation;
  };
}

function upstreamRuns(arrive: Arrive): Arrive {
  return async (world, name) => {
    const situation = await arrive(world, name);
    await new Situation(world, upstreamOf(name)).started();
    return situation;
  };
}
