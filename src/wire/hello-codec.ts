/**
 * Hello, from the wire to what a session needs (worker_service.proto, Hello; api.md, "The work stream").
 * Owns its defaults: no namespace means the default one, no queue all, kinds must be named. Throws MALFORMED.
 */
import type { ClaimRef, Hello } from '../gen/reeve/v1/worker_service_pb.js';
import { canonicalActionKind, isActionKindName } from '../kernel/admission/action-kinds.js';
import { DEFAULT_NAMESPACE, resolveNamespace, resolveQueue } from '../kernel/admission/identifiers.js';
import { textProblem } from '../kernel/admission/text-rules.js';
import { MAX_SLOTS } from '../kernel/delivery.js';
import type { Subscription } from '../kernel/placement.js';
import { boundedText } from './bounded-text.js';
import { executionTargets } from './enum-tables.js';
import { checked, malformedField } from './refusal-error.js';
import { durationMs } from './time-values.js';
import { readEpoch, readMark } from './whole-numbers.js';

/** Of each list in a Hello. */
const MAX_NAMED = 100;
const MAX_WORKER_NAME_BYTES = 255;
const MAX_VERSION_BYTES = 128;
const MAX_CAPABILITY_BYTES = 128;
const MAX_FEATURE_BYTES = 128;
const ALL_KINDS = '*';

export interface HelloCommand {
  readonly workerName: string;
  /** Ms; null: the default. */
  readonly ttlMs: number | null;
  readonly lingerMs: number | null;
  readonly slots: number;
  readonly subscription: Subscription;
  readonly helloJson: string;
  readonly reattach: {
    readonly sessionId: string;
    readonly secret: string;
    readonly held: readonly { readonly taskId: string; readonly epoch: number; readonly answeredThrough: number }[];
  } | null;
}

export function readHello(hello: Hello): HelloCommand {
  const { version, buildId, features, ttl, linger, reattach } = hello;
  if (hello.workerName === '') throw malformedField('hello.worker_name', 'is required');
  const workerName = boundedText('hello.worker_name', hello.workerName, MAX_WORKER_NAME_BYTES);
  boundedText('hello.version', version, MAX_VERSION_BYTES);
  boundedText('hello.build_id', buildId, MAX_VERSION_BYTES);
  bounded('hello.features', features);
  for (const [index, feature] of features.entries())
    boundedText(`hello.features[${index}]`, feature, MAX_FEATURE_BYTES);
  const subscription = readSubscription(hello);
  return {
    workerName,
    ttlMs: ttl === undefined ? null : durationMs('hello.ttl', ttl),
    lingerMs: linger === undefined ? null : durationMs('hello.linger', linger),
    slots: readSlots('hello.slots', hello.slots),
    subscription,
    helloJson: JSON.stringify({ version, build_id: buildId, features, ...listed(subscription) }),
    reattach:
      reattach === undefined
        ? null
        : {
            sessionId: reattach.sessionId,
            secret: reattach.sessionSecret,
            held: reattach.held.map(({ taskId, epoch, answeredThrough }, index) => ({
              taskId,
              epoch: readEpoch('hello.reattach.held[].epoch', epoch, index),
              answeredThrough: readMark('hello.reattach.held[].answered_through', answeredThrough, index),
            })),
          },
  };
}

/** The claims that a heartbeat names. */
export function readHeld(held: readonly ClaimRef[]): { readonly taskId: string; readonly epoch: number }[] {
  return held.map(({ taskId, epoch }, index) => ({ taskId, epoch: readEpoch('heartbeat.held[].epoch', epoch, index) }));
}

export function readSlots(field: string, slots: number): number {
  if (slots < 0 || slots > MAX_SLOTS) throw malformedField(field, `must be from 0 to ${MAX_SLOTS}`);
  return slots;
}

function readSubscription(hello: Hello): Subscription {
  const { namespaces, queues, actionKinds, executionTargets: targets, capabilities } = hello;
  bounded('hello.namespaces', namespaces);
  bounded('hello.queues', queues);
  bounded('hello.action_kinds', actionKinds);
  bounded('hello.capabilities', capabilities);
  bounded('hello.execution_targets', targets);
  return {
    namespaces: new Set(
      namespaces.length === 0
        ? [DEFAULT_NAMESPACE]
        : namespaces.map((namespace) => checked(resolveNamespace(namespace), 'hello.')),
    ),
    queues: queues.length === 0 ? null : new Set(queues.map((queue) => checked(resolveQueue(queue), 'hello.'))),
    actionKinds: readKinds(actionKinds),
    executionTargets:
      targets.length === 0
        ? null
        : new Set(targets.map((target, index) => executionTargets.read(`hello.execution_targets[${index}]`, target))),
    capabilities: new Set(capabilities.map((label, index) => readCapability(`hello.capabilities[${index}]`, label))),
  };
}

function readKinds(kinds: readonly string[]): ReadonlySet<string> | null {
  if (kinds.length === 0) throw malformedField('hello.action_kinds', 'at least one is required; * for all');
  if (kinds.length === 1 && kinds[0] === ALL_KINDS) return null;
  return new Set(
    kinds.map((kind, index) => {
      if (!isActionKindName(kind)) throw malformedField(`hello.action_kinds[${index}]`, 'is not the name of a kind');
      return canonicalActionKind(kind);
    }),
  );
}

function readCapability(field: string, label: string): string {
  const problem = textProblem(label, {
    maxBytes: MAX_CAPABILITY_BYTES,
    empty: 'refused',
    spaces: 'nowhere',
    controls: 'refused',
  });
  if (problem !== null) throw malformedField(field, problem);
  return label;
}

function bounded(field: string, list: readonly unknown[]): void {
  if (list.length > MAX_NAMED) throw malformedField(field, `must not be more than ${MAX_NAMED}`);
}

function listed(subscription: Subscription): Readonly<Record<string, readonly string[]>> {
  const { namespaces, queues, actionKinds, executionTargets: targets, capabilities } = subscription;
  return {
    namespaces: [...namespaces],
    queues: [...(queues ?? [])],
    action_kinds: [...(actionKinds ?? [ALL_KINDS])],
    execution_targets: [...(targets ?? [])],
    capabilities: [...capabilities],
  };
}
