/**
 * Placement: which queue position a task has and which sessions may run it (lifecycle.md sections 5 and 7).
 * A route is everything about a task that a session's subscription is matched against; tasks of one route are
 * interchangeable but for their order, so a backlog is searched by route and never task by task.
 */
import type { ExecutionTarget } from './admission/application.js';
import type { Admission, TaskRecord } from './record.js';

export interface Route {
  readonly namespace: string;
  readonly queue: string;
  readonly actionKind: string;
  readonly executionTarget: ExecutionTarget;
  /** Sorted, unique. */
  readonly requiredCapabilities: readonly string[];
}

/** What a session asked for in its Hello, defaults filled in. */
export interface Subscription {
  readonly namespaces: ReadonlySet<string>;
  /** Null: every queue of those namespaces. */
  readonly queues: ReadonlySet<string> | null;
  /** Null: every kind (`*`). */
  readonly actionKinds: ReadonlySet<string> | null;
  /** Null: every target. */
  readonly executionTargets: ReadonlySet<ExecutionTarget> | null;
  readonly capabilities: ReadonlySet<string>;
}

/** One step of priority outweighs one minute of waiting. */
export const PRIORITY_STEP_MS = 60_000;

export function routeOf(admission: Admission): Route {
  const { namespace, queue, application } = admission;
  return {
    namespace,
    queue,
    actionKind: application.actionKind,
    executionTarget: application.executionTarget,
    requiredCapabilities: application.requiredCapabilities,
  };
}

/** The route as one text, equal exactly when the routes are; none of its parts can hold a line feed. */
export function routeKeyOf(admission: Admission): string {
  const { namespace, queue, application } = admission;
  const { actionKind, executionTarget, requiredCapabilities } = application;
  return `${namespace}\n${queue}\n${actionKind}\n${executionTarget}\n${requiredCapabilities.join('\n')}`;
}

/**
 * Its place among the ready tasks of its route, smaller first: queue time less one minute per step of priority,
 * in epoch ms. Null when it cannot run now, and then it is not in the ready index at all.
 */
export function readyOrder(record: TaskRecord): number | null {
  if (record.status !== 'queued' || record.queuedAt === null || record.notBeforeAt !== null) return null;
  return record.queuedAt - record.policy.priority * PRIORITY_STEP_MS;
}

export function servesQueue(subscription: Subscription, route: Route): boolean {
  return subscription.namespaces.has(route.namespace) && (subscription.queues?.has(route.queue) ?? true);
}

export function serves(subscription: Subscription, route: Route): boolean {
  return (
    servesQueue(subscription, route) &&
    (subscription.actionKinds?.has(route.actionKind) ?? true) &&
    (subscription.executionTargets?.has(route.executionTarget) ?? true) &&
    route.requiredCapabilities.every((label) => subscription.capabilities.has(label))
  );
}
