// Everything that may happen next in a world: each actor's intents, every word of every claim that was ever sent, time,
// and the loop that tells followers. A world's cast says which of these its tasks are given.

import type { Intent } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { timersOf } from '../../src/kernel/timers.js';
import type { IntentKey } from '../../src/authority/intent-work.js';
import type { Follow } from '../../src/authority/follow-work.js';
import type { Submission } from '../../src/kernel/admission/submission.js';
import type { WorkerSaying } from '../../src/kernel/intent.js';
import { endOf } from '../contract/sample-plans.js';
import { OPERATOR, PRODUCER, SAYINGS, WORKER, cause, failure, policy, settle } from '../kernel/task-world.js';
import { type Wish, followersOf } from './proposal.js';
import type { SentClaim, World } from './world.js';

export interface Move {
  readonly name: string;
  /** Null: time passes, or somebody only looks. */
  readonly wish: Wish | null;
  /** Followers of what ends are told in its own transaction. */
  readonly tell?: boolean;
  /** What a worker says of this claim, and whether it hears the answer. */
  readonly claim?: SentClaim;
  readonly heard?: boolean;
  /** The telling loop tells this one, or ends its row. */
  readonly tells?: Follow | 'end';
  /** What it leads to when there is no wish. */
  readonly to?: Partial<World>;
}

export type Ability =
  /** Somebody takes it. */
  | 'claim'
  /** Its worker accepts, starts and completes it, in whatever order the words arrive. */
  | 'work'
  | 'fail'
  /** All else that a worker may say. */
  | 'talk'
  /** Answers to its worker are lost, words come twice or ahead of those before. */
  | 'mishear'
  | 'settle'
  | 'prove'
  | 'give back'
  | 'receipts'
  | 'cancel'
  | 'grace'
  /** The cancel carries a key, is repeated for ever, and somebody else uses that key for another. */
  | 'keyed cancel'
  | 'hold'
  | 'resume'
  | 'renew'
  | 'skip'
  | 'end from outside'
  | 'delay'
  | 'time'
  | 'pause';

export interface Role {
  readonly submission: Submission;
  readonly may: ReadonlySet<Ability>;
  /** At most so many generations, and so many claims; null: as many as there can be. */
  readonly generations: number;
  readonly claims: number | null;
}

export interface Cast {
  readonly roles: ReadonlyMap<string, Role>;
  readonly sessions: readonly string[];
  /** What becomes of sessions. */
  readonly sessionsMay: ReadonlySet<'end' | 'drain' | 'attach'>;
  /** Whether followers may be told in the transaction of the fact itself, by the loop, or either. */
  readonly telling: 'transaction' | 'loop' | 'either';
}

/** Where no task may be ticked, time does not matter. */
export function isTimed({ roles }: Cast): boolean {
  return [...roles.values()].some(({ may }) => may.has('time'));
}

export function movesFrom(world: World, cast: Cast): readonly Move[] {
  const moves: Move[] = [...sessionMoves(world, cast), ...tellingMoves(world, cast)];
  if (isTimed(cast)) moves.push(...clockMoves(world));
  for (const [taskId, role] of cast.roles) {
    moves.push({ name: `submit ${taskId}`, wish: { kind: 'submit', submission: role.submission } });
    const record = world.store.records.get(taskId);
    if (record === undefined) continue;
    const wishes = [...intentsOn(record, role, world), ...claimsOf(record, role, world, cast)];
    for (const [name, wish] of wishes) {
      if (cast.telling !== 'loop') moves.push({ name: `${name} ${taskId}`, wish, tell: true });
      if (cast.telling !== 'transaction') moves.push({ name: `${name} ${taskId}, untold`, wish });
    }
  }
  for (const claim of world.claims) {
    const role = cast.roles.get(claim.taskId);
    if (role !== undefined) moves.push(...wordsOf(claim, role, world, cast));
  }
  return moves;
}

type Named = readonly [string, Wish];

function intentsOn(record: TaskRecord, role: Role, { now }: World): readonly Named[] {
  const { may } = role;
  const { taskId } = record.admission;
  const next = `${taskId}-g${record.generation + 1}`;
  const resume = (newGenerationId: string | null): Intent => {
    return { kind: 'resume', newGenerationId, spareGenerationId: next, inputJson: null, cause: OPERATOR };
  };
  const cancel = (graceMs: number | null): Intent => ({ kind: 'request_cancellation', graceMs, cause: PRODUCER });
  const tick = (quietSince: number): Intent => ({ kind: 'tick', quietSince, chance: 0.5 });
  const named: (readonly [string, Intent, IntentKey?])[] = [];
  if (may.has('cancel')) named.push(['cancel', cancel(null)]);
  if (may.has('grace')) named.push(['cancel with grace', cancel(500)]);
  if (may.has('keyed cancel')) {
    named.push(['cancel by key', cancel(null), { key: 'K', contentHash: 'sha256:one' }]);
    named.push(['cancel otherwise by that key', cancel(500), { key: 'K', contentHash: 'sha256:other' }]);
  }
  if (may.has('hold')) named.push(['hold', { kind: 'suspend', lease: null, cause: OPERATOR }]);
  if (may.has('skip')) {
    named.push(['skip', { kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) }]);
  }
  if (may.has('end from outside')) {
    for (const outcome of ['failed', 'timed_out', 'completed'] as const) named.push([outcome, settle(outcome)]);
  }
  const renews = record.generation < role.generations;
  if (may.has('resume') && (renews || record.status === 'suspended')) named.push(['resume', resume(null)]);
  if (may.has('renew') && renews) named.push(['renew', resume(next)]);
  if (may.has('delay')) {
    named.push(['delay', delayed(now + 700)], ['end the delay', delayed(null)]);
  }
  if (may.has('time') && timersOf(record).some(({ dueAt }) => dueAt <= now)) {
    named.push(['tick', tick(0)]);
    if (may.has('pause')) named.push(['tick after a pause', tick(now)]);
  }
  return named.map(([name, intent, keyed]): Named => {
    const key = keyed === undefined ? {} : { key: keyed, remembers: staysAnswered };
    return [name, { kind: 'intent', request: { taskId, intent, ...key } }];
  });
}

/** As Cancel has it: also that there was nothing to do is an answer that stays. */
function staysAnswered({ kind }: { readonly kind: string }): boolean {
  return kind === 'applied' || kind === 'unchanged';
}

function delayed(notBeforeAtMs: number | null): Intent {
  return { kind: 'update_policy', fields: ['not_before'], values: policy({ notBeforeAtMs }), cause: OPERATOR };
}

function claimsOf(record: TaskRecord, role: Role, { store }: World, cast: Cast): readonly Named[] {
  if (!role.may.has('claim') || (role.claims !== null && record.epoch >= role.claims)) return [];
  const { taskId } = record.admission;
  return cast.sessions.map((sessionId): Named => {
    const attachment = store.sessions.get(sessionId)?.attachment ?? 1;
    return [`${sessionId} claims`, { kind: 'claim', taskId, sessionId, attachment }];
  });
}

const WORK: readonly WorkerSaying[] = [SAYINGS.accepted, SAYINGS.started, SAYINGS.completed];
/** Output stands in the same rows of the AEP table as progress. */
const TALK: readonly WorkerSaying[] = Object.values(SAYINGS).filter(
  (saying) => !WORK.includes(saying) && saying.kind !== 'failed' && saying.kind !== 'output',
);
const FOR_GOOD: WorkerSaying = { kind: 'failed', ending: failure('broken_input', false), retryAfterMs: null };

/** What may arrive of a claim, and what its session may ask for under its lease. */
function wordsOf(claim: SentClaim, { may }: Role, world: World, cast: Cast): readonly Move[] {
  const { taskId, sessionId, epoch, answered } = claim;
  const who = `${sessionId} (${epoch})`;
  const moves: Move[] = [];
  const say = (saying: WorkerSaying, seq: number, heard: boolean, attachment: number, how = ''): void => {
    const report = reportOf(claim, { seq, saying });
    const wish: Wish = { kind: 'report', request: { taskId, report, attachment, weightBytes: 100 } };
    const name = `${who} says ${saying.kind}${how} of ${taskId}`;
    const tell = cast.telling !== 'loop';
    moves.push({ name, wish, claim, heard, tell });
  };
  const attachment = world.store.sessions.get(sessionId)?.attachment ?? 1;
  const sayings = [
    ...(may.has('work') ? WORK : []),
    ...(may.has('fail') ? [SAYINGS.failed, FOR_GOOD] : []),
    ...(may.has('talk') ? TALK : []),
  ];
  for (const saying of sayings) {
    say(saying, answered + 1, true, attachment);
    if (attachment > 1) say(saying, answered + 1, true, attachment - 1, ' by its old stream');
    if (!may.has('mishear')) continue;
    say(saying, answered + 1, false, attachment, ' unheard');
    say(saying, answered + 2, true, attachment, ' too early');
  }
  if (may.has('mishear')) {
    // A word without a place in the AEP table: only its number tells that it was heard before.
    say(SAYINGS.checkpoint, answered, true, attachment, ' again');
    moves.push(...wordsOfOthers(claim, world, cast));
  }
  for (const [name, intent] of underLease(claim, may, world)) {
    const wish: Wish = { kind: 'intent', request: { taskId, intent } };
    moves.push({ name: `${who} ${name} ${taskId}`, wish, tell: cast.telling !== 'loop' });
  }
  return moves;
}

/** Another session that speaks under a claim which it never had. */
function wordsOfOthers(claim: SentClaim, { store }: World, { sessions, telling }: Cast): readonly Move[] {
  const others = sessions.filter((sessionId) => sessionId !== claim.sessionId);
  return others.map((sessionId): Move => {
    const report = { ...reportOf(claim, { seq: claim.answered + 1, saying: SAYINGS.checkpoint }), sessionId };
    const attachment = store.sessions.get(sessionId)?.attachment ?? 1;
    const request = { taskId: claim.taskId, report, attachment, weightBytes: 100 };
    const name = `${sessionId} speaks of ${claim.taskId}, which ${claim.sessionId} has (${claim.epoch})`;
    return { name, wish: { kind: 'report', request }, tell: telling !== 'loop' };
  });
}

function reportOf(claim: SentClaim, event: { readonly seq: number; readonly saying: WorkerSaying }) {
  const { sessionId, generation, epoch, answered } = claim;
  return { sessionId, generation, epoch, answeredThrough: answered, events: [event], chance: 0.5, cause: WORKER };
}

function underLease(
  claim: SentClaim,
  may: ReadonlySet<Ability>,
  { now, store }: World,
): readonly (readonly [string, Intent])[] {
  const { epoch, sessionId, generation, taskId } = claim;
  const lease = { epoch, sessionId };
  const named: (readonly [string, Intent])[] = [];
  const completed = (number: number): Intent => {
    return settle('completed', { lease, cause: WORKER, authoritativeEvent: { number, generation, at: now } });
  };
  if (may.has('settle')) {
    named.push(['settles', settle('completed', { lease, cause: WORKER })]);
    named.push(['fails', settle('failed', { lease, cause: WORKER, ending: failure('x', false) })]);
    named.push(['cancels', settle('cancelled', { lease, cause: WORKER })]);
    named.push(['suspends', { kind: 'suspend', lease, cause: WORKER }]);
  }
  if (may.has('prove')) {
    named.push(['proves with its last event', completed(store.records.get(taskId)?.lastEvent ?? 1)]);
    named.push(['proves with its first event', completed(1)]);
  }
  if (may.has('receipts')) {
    named.push(['has its cancel', { kind: 'receipt', lease, acknowledged: false, cause: WORKER }]);
    named.push(['is stopping', { kind: 'receipt', lease, acknowledged: true, cause: WORKER }]);
  }
  if (may.has('give back')) {
    named.push(['was not reached with', { kind: 'hand_back', lease, why: 'undelivered', cause: OPERATOR }]);
    named.push(['does not name', { kind: 'hand_back', lease, why: 'forgotten', cause: OPERATOR }]);
    named.push(['releases', { kind: 'release', lease, checkpointJson: null, cause: WORKER }]);
  }
  return named;
}

function sessionMoves({ store }: World, { sessions, sessionsMay, telling, roles }: Cast): readonly Move[] {
  const moves: Move[] = [];
  for (const sessionId of sessions) {
    const row = store.sessions.get(sessionId);
    if (row === undefined) continue;
    const { attachment } = row;
    const write = (name: string, change: Extract<Wish, { kind: 'session' }>['write']): void => {
      moves.push({ name: `${sessionId} ${name}`, wish: { kind: 'session', write: change } });
    };
    if (row.state === 'gone') {
      // Its leases are taken one by one, at any time after.
      for (const taskId of roles.keys()) {
        const intent: Intent = { kind: 'session_lost', sessionId, cause: OPERATOR };
        const wish: Wish = { kind: 'intent', request: { taskId, intent } };
        if (store.records.has(taskId))
          moves.push({ name: `${sessionId} has lost ${taskId}`, wish, tell: telling !== 'loop' });
      }
      continue;
    }
    if (sessionsMay.has('end')) write('ends', { kind: 'end', sessionId, attachment, end: endOf() });
    if (sessionsMay.has('drain')) write('drains', { kind: 'drain', sessionId, attachment });
    if (sessionsMay.has('attach') && attachment === 1) {
      const { expiresAt, ttlMs, lingerMs, workerName, helloJson } = row;
      write('attaches', { kind: 'attach', sessionId, from: 1, expiresAt, ttlMs, lingerMs, workerName, helloJson });
    }
  }
  return moves;
}

/** To the next moment at which something comes due; and, where that is allowed, back to before the last one. */
function clockMoves({ store, now, clockSteps }: World): readonly Move[] {
  const dues = [...store.records.values()].flatMap((record) => timersOf(record).map(({ dueAt }) => dueAt));
  const ahead = dues.filter((dueAt) => dueAt > now);
  const behind = dues.filter((dueAt) => dueAt <= now);
  const moves: Move[] = [];
  if (ahead.length > 0) moves.push({ name: 'time passes', wish: null, to: { now: Math.min(...ahead) } });
  if (behind.length > 0 && clockSteps > 0) {
    const to = { now: Math.max(...behind) - 1, clockSteps: clockSteps - 1 };
    moves.push({ name: 'the clock is set back', wish: null, to });
  }
  return moves;
}

function tellingMoves({ store, telling }: World, cast: Cast): readonly Move[] {
  if (cast.telling === 'transaction' && store.family.propagations.size === 0) return [];
  if (telling === null) {
    return [...store.family.propagations.values()].map((row) => {
      const name = `the loop reads ${row.taskId} ${row.outcome}`;
      return { name, wish: null, to: { telling: { row, pending: followersOf(store, row) } } };
    });
  }
  const { row, pending } = telling;
  // A process that dies in the middle of it leaves the row to the next.
  const dies: Move = { name: 'the loop dies', wish: null, to: { telling: null } };
  if (pending.length === 0)
    return [dies, { name: 'the loop ends its row', wish: { kind: 'propagated', row }, tells: 'end' }];
  return [
    dies,
    ...pending.map((follow): Move => {
      return {
        name: `the loop tells ${follow.taskId}`,
        wish: { kind: 'follow', follow },
        tell: cast.telling !== 'loop',
        tells: follow,
      };
    }),
  ];
}
