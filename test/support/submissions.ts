// Submissions as callers make them, through the real admission, with defaults where a test does not care.

import { buildActionKindRegistry } from '../../src/kernel/admission/action-kinds.js';
import { type Submission, admit } from '../../src/kernel/admission/submission.js';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import type { Subscription } from '../../src/kernel/placement.js';
import type { ActorType, Cause } from '../../src/kernel/cause.js';

const registry = buildActionKindRegistry([]);
if (!registry.ok) throw new Error('the built-in kinds are malformed');
const KINDS = registry.value;

export interface Given {
  readonly namespace?: string;
  readonly queue?: string;
  readonly kind?: string;
  readonly target?: string;
  readonly capabilities?: readonly string[];
  readonly args?: string;
  readonly taskId?: string;
  readonly policy?: TaskPolicyInput;
}

export function submission(key: string, given: Given = {}): Submission {
  const admitted = admit(
    {
      namespace: given.namespace ?? '',
      queue: given.queue ?? '',
      idempotencyKey: key,
      taskId: given.taskId ?? null,
      application: {
        actionKind: given.kind ?? 'agent',
        args: { form: 'text', text: given.args ?? '{}' },
        executionTarget: given.target ?? 'host',
        requiredCapabilities: given.capabilities ?? [],
        libraryRef: null,
        libraryContentHash: null,
      },
      policy: { ...given.policy, retry: { jitter: 0, ...given.policy?.retry } },
      source: 'rpc',
      scheduleId: null,
      actor: { type: 'producer', id: 'tests' },
      principal: 'anonymous',
      causation: null,
      traceContext: {},
    },
    KINDS,
  );
  if (!admitted.ok) throw new Error(`the test's submission is malformed: ${JSON.stringify(admitted.refusal)}`);
  return admitted.value;
}

/** A subscription to everything in the default namespace but for what is given. */
export function subscription(
  given: {
    readonly namespaces?: readonly string[];
    readonly queues?: readonly string[];
    readonly kinds?: readonly string[];
    readonly targets?: readonly ('host' | 'process')[];
    readonly capabilities?: readonly string[];
  } = {},
): Subscription {
  return {
    namespaces: new Set(given.namespaces ?? ['default']),
    queues: given.queues === undefined ? null : new Set(given.queues),
    actionKinds: given.kinds === undefined ? null : new Set(given.kinds),
    executionTargets: given.targets === undefined ? null : new Set(given.targets),
    capabilities: new Set(given.capabilities ?? []),
  };
}

export function causeOf(type: ActorType): Cause {
  return {
    actor: { type, id: `${type}-1` },
    principal: 'tester',
    source: 'rpc',
    reason: null,
    causation: null,
    authoritativeAt: null,
  };
}
