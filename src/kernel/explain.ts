/**
 * Explaining: why a task is not running, or not ending, and what happens next by itself (task_service.proto, Explain).
 * Pure: a record and what is known around it make an answer. It tells what the rules elsewhere do and is none itself;
 * only what can stand in the way today is told.
 */
import { type PermitWait, fullPermit, subjectOf } from './permits.js';
import type { PlacementRules, Subscription } from './placement.js';
import { NO_RULES, eligibilityLabels, isRegistered, routeOf, servesQueue } from './placement.js';
import type { Lease, TaskRecord } from './record.js';
import { isTerminal } from './status.js';
import { type TimerKind, timersOf } from './timers.js';

export type BlockerKind =
  | 'terminal'
  | 'suspended'
  | 'not_before'
  | 'retry_backoff'
  | 'dependency'
  | 'concurrency_key'
  | 'serialized_capability'
  | 'kind_unregistered'
  | 'no_worker_for_queue'
  | 'no_worker_for_kind'
  | 'no_worker_for_target'
  | 'no_worker_with_capabilities'
  | 'no_free_slot'
  | 'dispatching'
  | 'awaiting_accept'
  | 'running'
  | 'worker_blocked'
  | 'cancel_undelivered'
  | 'cancel_unacknowledged'
  | 'cancel_unsettled'
  | 'recovery_hold';

export interface Holder {
  readonly workerName: string;
  readonly sessionId: string;
}

/** A task that holds what another waits for. */
export interface TaskHolder {
  readonly taskId: string;
}

export interface Blocker {
  readonly kind: BlockerKind;
  /** For people: one sentence. */
  readonly detail: string;
  readonly holders: readonly (Holder | TaskHolder)[];
  /** All of them, also those that are not named. */
  readonly holderCount: number;
  /** Epoch ms at which it is out of the way by itself; null: not known. */
  readonly until: number | null;
}

/** A session that is given claims: attached, live, not draining. */
export interface Candidate extends Holder {
  readonly subscription: Subscription;
  /** Claims it could be given now. */
  readonly freeSlots: number;
}

export interface ExplainContext {
  /** Epoch ms, the store's clock. */
  readonly now: number;
  /** Epoch ms at which the service last came out of a pause. */
  readonly quietSince: number;
  readonly candidates: readonly Candidate[];
  /** What the task waits for before it is ready; null: no permit. */
  readonly permitWait: PermitWait | null;
  /** What the deployment says about who may run what; absent: nothing. */
  readonly rules?: PlacementRules;
  /** The session that holds the lease, as its row has it; null: no lease, or no such row. */
  readonly session: { readonly expiresAt: number; readonly ttlMs: number; readonly attached: boolean } | null;
}

export interface NextTimer {
  readonly kind: TimerKind | 'session';
  /** Epoch ms. */
  readonly dueAt: number;
}

export interface Explanation {
  /** The most decisive first; never empty. */
  readonly blockers: readonly Blocker[];
  /** Null: nothing happens by itself. */
  readonly nextTimer: NextTimer | null;
}

export function explain(record: TaskRecord, context: ExplainContext): Explanation {
  return { blockers: blockersOf(record, context), nextTimer: nextTimer(record, context) };
}

function blockersOf(record: TaskRecord, context: ExplainContext): readonly Blocker[] {
  switch (record.status) {
    case 'queued':
      return [queued(record, context)];
    case 'waiting_dependency':
      return [blocker('dependency', 'it waits for other tasks to end')];
    case 'retry_wait':
      return [blocker('retry_backoff', `attempt ${String(record.attempt)} ended; the next is not due`, record.retryAt)];
    case 'suspended':
      return [blocker('suspended', `${record.reason?.summary ?? 'suspended'}; Resume lets it go on`)];
    case 'running':
      return record.lease === null
        ? [blocker('dispatching', 'it is between two owners')]
        : running(record, record.lease, context);
    default:
      return [blocker('terminal', `the generation is over: ${record.status}`)];
  }
}

function queued(record: TaskRecord, { now, candidates, permitWait, rules = NO_RULES }: ExplainContext): Blocker {
  if (record.notBeforeAt !== null && record.notBeforeAt > now) {
    return blocker('not_before', 'its start is delayed', record.notBeforeAt);
  }
  if (permitWait !== null && fullPermit(permitWait) !== null) return waitsForPermit(permitWait);
  const route = routeOf(record.admission);
  if (!isRegistered(route.actionKind, rules)) {
    const detail = `kind ${route.actionKind} is not registered in this deployment, and no worker is given it until it is`;
    return blocker('kind_unregistered', detail);
  }
  const onQueue = candidates.filter(({ subscription }) => servesQueue(subscription, route));
  if (onQueue.length === 0) {
    return blocker('no_worker_for_queue', `no worker serves queue ${route.queue} of namespace ${route.namespace}`);
  }
  const ofKind = onQueue.filter(({ subscription }) => subscription.actionKinds?.has(route.actionKind) ?? true);
  if (ofKind.length === 0) {
    return blocker('no_worker_for_kind', `${workers(onQueue)} the queue, none of them kind ${route.actionKind}`);
  }
  const onTarget = ofKind.filter(
    ({ subscription: { executionTargets } }) => executionTargets?.has(route.executionTarget) ?? true,
  );
  if (onTarget.length === 0) {
    const detail = `${workers(ofKind)} queue and kind, none of them target ${route.executionTarget}`;
    return blocker('no_worker_for_target', detail);
  }
  const needed = eligibilityLabels(route, rules);
  const missing = leastMissing(onTarget, needed);
  if (missing.length > 0) {
    const detail = `no worker has all that is required; the closest has not: ${missing.join(', ')}`;
    return blocker('no_worker_with_capabilities', detail);
  }
  const fitting = onTarget.filter((candidate) => missingOf(candidate, needed).length === 0);
  if (!fitting.some(({ freeSlots }) => freeSlots > 0)) {
    return blocker('no_free_slot', `${workers(fitting)} tasks like it, and all of them are full`, null, fitting);
  }
  // There is room, and whoever serves those of its route before it serves it too.
  if (permitWait !== null) return waitsForPermit(permitWait);
  return blocker('dispatching', 'it is claimable and a worker has a free slot');
}

function waitsForPermit({ name, limit, running, holders, ahead, aheadIsAtLeast }: PermitWait): Blocker {
  const subject = subjectOf(name);
  const what = subject.kind === 'key' ? `concurrency key ${subject.key}` : `capability ${subject.label}`;
  const before = `${aheadIsAtLeast ? 'at least ' : ''}${String(ahead)} of its route before it`;
  const detail = `it waits for ${what}: ${String(running)} of ${String(limit)} running, ${before}`;
  return {
    kind: subject.kind === 'key' ? 'concurrency_key' : 'serialized_capability',
    detail,
    holders: holders.map((taskId) => ({ taskId })),
    holderCount: running,
    until: null,
  };
}

function missingOf({ subscription }: Candidate, needed: readonly string[]): readonly string[] {
  return needed.filter((label) => !subscription.capabilities.has(label));
}

function leastMissing(candidates: readonly Candidate[], needed: readonly string[]): readonly string[] {
  let least = needed;
  for (const candidate of candidates) {
    const missing = missingOf(candidate, needed);
    if (missing.length < least.length) least = missing;
  }
  return least;
}

function running(record: TaskRecord, lease: Lease, context: ExplainContext): readonly Blocker[] {
  const holders = [{ workerName: lease.worker, sessionId: lease.sessionId }];
  const blockers: Blocker[] = [];
  const add = (kind: BlockerKind, detail: string, until: number | null = null): void => {
    blockers.push(blocker(kind, detail, until, holders));
  };
  const held = recoveryHold(lease, context);
  if (held !== null) blockers.push(held);
  const { cancellation } = record;
  if (cancellation !== null) {
    const until = cancellation.graceEndsAt;
    if (cancellation.acknowledgedAt !== null) add('cancel_unsettled', 'it is stopping and has not finished', until);
    else if (cancellation.deliveredAt !== null)
      add('cancel_unacknowledged', 'the cancel is there; no reaction yet', until);
    else add('cancel_undelivered', 'the worker has not confirmed the cancel', until);
  }
  const acceptDue = Math.max(lease.acceptBy, context.quietSince + lease.sessionTtlMs);
  const away = context.session?.attached === false ? ', whose stream is not attached' : '';
  if (lease.acceptedAt === null) add('awaiting_accept', `worker ${lease.worker}${away} has not accepted it`, acceptDue);
  else if (record.blockedReason !== null) add('worker_blocked', record.blockedReason);
  else add('running', `worker ${lease.worker}${away} is at work on attempt ${String(record.attempt)}`);
  return blockers;
}

/** What would have been judged by now, were silence not excused after a start or a stall of the service. */
function recoveryHold(lease: Lease, { now, quietSince, session }: ExplainContext): Blocker | null {
  const excusedUntil = quietSince + (session?.ttlMs ?? lease.sessionTtlMs);
  if (now >= excusedUntil) return null;
  const overdue = (session !== null && session.expiresAt < now) || (lease.acceptedAt === null && lease.acceptBy <= now);
  if (!overdue) return null;
  return blocker('recovery_hold', 'the service was away itself and gives its worker time to come back', excusedUntil);
}

function nextTimer(record: TaskRecord, { quietSince, session }: ExplainContext): NextTimer | null {
  if (isTerminal(record.status)) return null;
  const excusedUntil = quietSince + (record.lease?.sessionTtlMs ?? 0);
  const timers: NextTimer[] = timersOf(record).map(({ kind, dueAt, excusable }) => ({
    kind,
    dueAt: excusable ? Math.max(dueAt, excusedUntil) : dueAt,
  }));
  if (session !== null)
    timers.push({ kind: 'session', dueAt: Math.max(session.expiresAt, quietSince + session.ttlMs) });
  return timers.reduce<NextTimer | null>(
    (first, next) => (first === null || next.dueAt < first.dueAt ? next : first),
    null,
  );
}

function blocker(
  kind: BlockerKind,
  detail: string,
  until: number | null = null,
  holders: readonly Holder[] = [],
): Blocker {
  return { kind, detail, until, holders, holderCount: holders.length };
}

function workers(found: readonly Candidate[]): string {
  return found.length === 1 ? 'one worker serves' : `${String(found.length)} workers serve`;
}
