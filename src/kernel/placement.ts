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

/**
 * What a capability label does for matching. eligibility: only a session that has it runs the task. serialization: as
 * eligibility, and one running task per key. affinity: a session that has it is preferred when several have a free
 * slot, and none is waited for.
 */
export const CAPABILITY_CLASSES = ['eligibility', 'serialization', 'affinity'] as const;
export type CapabilityClass = (typeof CAPABILITY_CLASSES)[number];
/** By label; one that is not in it is of eligibility. */
export type CapabilityClasses = ReadonlyMap<string, CapabilityClass>;

/** What a deployment says about who may run what. */
export interface PlacementRules {
  /** The kinds that are handed out; a task of any other stays queued. Null: every kind. */
  readonly actionKinds: { has(kind: string): boolean } | null;
  readonly capabilityClasses: CapabilityClasses;
}

/** Every kind, every label required: what holds where nothing is configured. */
export const NO_RULES: PlacementRules = { actionKinds: null, capabilityClasses: new Map() };

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

/** Whether tasks of this kind are handed to anybody. */
export function isRegistered(actionKind: string, { actionKinds }: PlacementRules): boolean {
  return actionKinds?.has(actionKind) ?? true;
}

/** The labels without which a session is given no task of this route. */
export function eligibilityLabels(route: Route, { capabilityClasses }: PlacementRules): readonly string[] {
  if (capabilityClasses.size === 0) return route.requiredCapabilities;
  return route.requiredCapabilities.filter((label) => capabilityClasses.get(label) !== 'affinity');
}

/** How well a session that serves the route suits it: of the labels that are only preferred, how many it has. */
export function preference(subscription: Subscription, route: Route, { capabilityClasses }: PlacementRules): number {
  if (capabilityClasses.size === 0) return 0;
  let has = 0;
  for (const label of route.requiredCapabilities) {
    if (capabilityClasses.get(label) === 'affinity' && subscription.capabilities.has(label)) has += 1;
  }
  return has;
}

export function serves(subscription: Subscription, route: Route, rules: PlacementRules = NO_RULES): boolean {
  return (
    isRegistered(route.actionKind, rules) &&
    servesQueue(subscription, route) &&
    (subscription.actionKinds?.has(route.actionKind) ?? true) &&
    (subscription.executionTargets?.has(route.executionTarget) ?? true) &&
    eligibilityLabels(route, rules).every((label) => subscription.capabilities.has(label))
  );
}
