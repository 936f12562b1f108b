// The small worlds: who is in them and what may happen to each. Each is small enough to be gone through whole; together
// they hold two workers, two generations, a parent with an attached and a detached child, and dependencies.

import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import type { CancellationPolicy } from '../../src/kernel/admission/policy.js';
import type { DependencyCondition, OnUnsatisfied } from '../../src/kernel/admission/family-policy.js';
import { submission } from '../support/submissions.js';
import { T0, type Exploration } from './explore.js';
import type { Ability, Cast, Role } from './moves.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

interface RoleGiven {
  readonly may: readonly Ability[];
  readonly policy?: TaskPolicyInput;
  readonly generations?: number;
  readonly claims?: number | null;
}

function role(taskId: string, { may, policy = {}, generations = 1, claims = 2 }: RoleGiven): [string, Role] {
  const given = { taskId, policy: { ...policy, retry: { maxAttempts: 2, initialMs: 60_000, ...policy.retry } } };
  return [taskId, { submission: submission(`key of ${taskId}`, given), may: new Set(may), generations, claims }];
}

function cast(given: Partial<Cast>, ...roles: readonly (readonly [string, Role])[]): Cast {
  return { sessions: ['A', 'B'], sessionsMay: new Set(), telling: 'either', ...given, roles: new Map(roles) };
}

const WITHOUT_END = Number.POSITIVE_INFINITY;

/** Spans so far apart that no sum of the shorter ones reaches the next. */
const TIMERS: TaskPolicyInput = {
  timeoutMs: 100 * DAY,
  startByMs: 40 * DAY,
  attemptTimeoutMs: 2 * DAY,
  progressTimeoutMs: 3 * HOUR,
};

export interface WorldSize {
  /** Of the longer form: more claims, more generations. */
  readonly large: boolean;
}

type Policy = CancellationPolicy;

/** All that a worker may say of a task, in any order, while its caller may ask for its end. */
export function words(cancellationPolicy: Policy, { large }: WorldSize): Exploration {
  const may: readonly Ability[] = [
    ...(['claim', 'work', 'fail', 'talk', 'cancel', 'receipts', 'hold', 'resume', 'end from outside'] as const),
  ];
  const T = role('T', { may, policy: { cancellationPolicy }, claims: large ? 3 : 2, generations: large ? 2 : 1 });
  return { cast: cast({ telling: 'transaction' }, T), admitted: ['T'], races: true, maxStates: WITHOUT_END };
}

/** All that callers and operators may ask of a task that workers claim and settle, over two generations. */
export function operators(cancellationPolicy: Policy, { large }: WorldSize): Exploration {
  const may: readonly Ability[] = [
    ...(['claim', 'settle', 'prove', 'cancel', 'grace', 'keyed cancel', 'hold', 'resume', 'renew', 'skip'] as const),
    ...(['end from outside', 'delay', ...(large ? (['work', 'time'] as const) : [])] as const),
  ];
  const T = role('T', { may, policy: { cancellationPolicy }, generations: 2, claims: 3 });
  return { cast: cast({ telling: 'transaction' }, T), admitted: [], races: true, maxStates: WITHOUT_END };
}

/** Every timer there is, a service that comes out of a pause, and a clock that is set back. */
export function clock(cancellationPolicy: Policy, { large }: WorldSize): Exploration {
  const may: readonly Ability[] = [
    ...(['claim', 'work', 'fail', 'grace', 'time', 'pause'] as const),
    ...(large ? (['hold', 'resume', 'give back'] as const) : []),
  ];
  const T = role('T', {
    may,
    policy: { ...TIMERS, cancellationPolicy, notBeforeAtMs: T0 + HOUR },
    claims: large ? 3 : 2,
  });
  const world = cast({ telling: 'transaction', sessions: ['A'] }, T);
  return { cast: world, admitted: ['T'], clockSteps: 1, races: true, maxStates: WITHOUT_END };
}

/** A total time-out that passes wherever it finds the task: waiting for another, running, between attempts, held. */
export function deadlines(cancellationPolicy: Policy, { large }: WorldSize): Exploration {
  const dependsOn = [{ taskId: 'U', condition: 'terminal' as const }];
  const may: readonly Ability[] = ['claim', 'fail', 'cancel', 'hold', 'resume', 'renew', 'time'];
  const policy = { dependsOn, timeoutMs: 100 * DAY, cancellationPolicy };
  const world = cast(
    { telling: 'transaction', sessions: ['A'] },
    role('U', { may: ['end from outside'], claims: 0 }),
    role('W', { may: large ? [...may, 'work'] : may, policy, generations: 2, claims: 2 }),
  );
  return { cast: world, admitted: ['U'], races: true, maxStates: WITHOUT_END };
}

/** A claim that nobody takes circles, and ends. */
export function circling(): Exploration {
  const T = role('T', { may: ['claim', 'give back', 'work', 'time', 'cancel'], claims: null });
  return { cast: cast({ telling: 'transaction' }, T), admitted: ['T'], races: true, maxStates: WITHOUT_END };
}

/** Words and answers that are lost, come twice, late and out of order, also by a stream that was replaced. */
export function messages(cancellationPolicy: Policy, { large }: WorldSize): Exploration {
  const may: readonly Ability[] = ['claim', 'work', 'mishear', 'give back', 'keyed cancel'];
  const sessionsMay = new Set(large ? (['attach', 'end'] as const) : (['attach'] as const));
  const T = role('T', { may: large ? [...may, 'fail', 'renew'] : may, policy: { cancellationPolicy }, generations: 2 });
  return { cast: cast({ telling: 'transaction', sessionsMay }, T), admitted: [], races: true, maxStates: WITHOUT_END };
}

/** Sessions that end, drain and attach anew while they claim and settle; what they lose is taken one by one, and late. */
export function sessions({ large }: WorldSize): Exploration {
  const may: readonly Ability[] = ['claim', 'settle', 'fail', 'keyed cancel', 'renew'];
  const sessionsMay = new Set(['end', 'drain', 'attach'] as const);
  const T = role('T', { may: large ? [...may, 'work'] : may, generations: 2, claims: large ? 3 : 2 });
  return {
    cast: cast({ telling: 'transaction', sessionsMay }, T),
    admitted: ['T'],
    races: true,
    maxStates: WITHOUT_END,
  };
}

function under(parent: string, attached: boolean, generation = 1): TaskPolicyInput {
  return { parent: { taskId: parent, generationId: `${parent}-g${generation}`, attached } };
}

/** A parent with an attached and a detached child, each of them admitted, run and ended at any time. */
export function family(telling: Cast['telling'], { large }: WorldSize): Exploration {
  const ending: readonly Ability[] = ['claim', 'settle', 'cancel'];
  const twice = { generations: 2, claims: large ? 2 : 1 };
  const world = cast(
    { telling, sessionsMay: new Set(large ? ['end'] : []), sessions: large ? ['A', 'B'] : ['A'] },
    role('P', { may: [...ending, 'renew', ...(large ? (['hold', 'end from outside'] as const) : [])], ...twice }),
    role('C', { may: [...ending, 'renew', ...(large ? (['work'] as const) : [])], policy: under('P', true), ...twice }),
    role('D', { may: ['end from outside'], policy: under('P', false) }),
  );
  return { cast: world, admitted: ['P'], races: true, maxStates: WITHOUT_END };
}

/** A task that waits for two others, one of which may begin anew. */
export function dependencies(
  condition: DependencyCondition,
  onUnsatisfied: OnUnsatisfied,
  { large }: WorldSize,
): Exploration {
  const dependsOn = ['U', 'V'].map((taskId) => ({ taskId, condition }));
  const W: readonly Ability[] = ['claim', 'cancel', 'hold', 'resume', 'end from outside'];
  const world = cast(
    { sessions: ['A'] },
    role('U', { may: ['claim', 'settle', 'renew'], generations: 2, claims: large ? 2 : 1 }),
    role('V', { may: ['end from outside', 'skip', ...(large ? (['claim', 'settle'] as const) : [])], claims: 1 }),
    role('W', {
      may: large ? [...W, 'renew'] : W,
      policy: { dependsOn, onUnsatisfied },
      generations: large ? 2 : 1,
      claims: 1,
    }),
  );
  return { cast: world, admitted: ['U', 'V'], races: true, maxStates: WITHOUT_END };
}

/** Three levels and a dependency across them: what ends the root ends a child that another task waits for. */
export function lineage({ large }: WorldSize): Exploration {
  const waits = { dependsOn: [{ taskId: 'C', condition: 'succeeded' as const }] };
  const C: readonly Ability[] = large ? ['claim', 'settle', 'cancel'] : ['claim', 'cancel', 'settle'];
  const world = cast(
    { sessions: ['A'] },
    role('P', { may: ['end from outside', 'cancel'], claims: 1 }),
    role('C', { may: C, policy: under('P', true), claims: 1 }),
    role('G', { may: ['claim'], policy: under('C', true), claims: 1 }),
    role('W', { may: large ? ['claim', 'hold', 'resume'] : ['claim'], policy: waits, claims: 1 }),
  );
  return { cast: world, admitted: ['P'], races: true, maxStates: WITHOUT_END };
}
