/**
 * UpdatePolicy from the wire to the domain: which fields change, and their new values.
 * Owns what the mask means: a named field takes the value given or returns to its default, all others are left as they
 * are; without a mask the fields that are set change. Ranges are the kernel's, the same as at admission.
 */
import { create } from '@bufbuild/protobuf';
import { type TaskPolicy, TaskPolicySchema } from '../gen/reeve/v1/task_pb.js';
import type { UpdatePolicyRequest } from '../gen/reeve/v1/task_service_pb.js';
import { resolvePolicy } from '../kernel/admission/policy.js';
import { CHANGEABLE_POLICY_FIELDS, type PolicyField } from '../kernel/policy-update.js';
import { readCause } from './cause-codec.js';
import { readPolicy } from './policy-codec.js';
import { checked, malformedField } from './refusal-error.js';
import { type IntentCommand, readKey, readRevision, requiredTaskId } from './transition-codec.js';

/** Every field that can change, by the name of its message field. */
const PARTS: Readonly<Record<PolicyField, (policy: TaskPolicy) => Partial<TaskPolicy>>> = {
  priority: ({ priority }) => set({ priority }),
  labels: ({ labels }) => ({ labels }),
  description: ({ description }) => set({ description }),
  timeout: ({ timeout }) => set({ timeout }),
  start_by: ({ startBy }) => set({ startBy }),
  not_before: ({ notBefore }) => set({ notBefore }),
  attempt_timeout: ({ attemptTimeout }) => set({ attemptTimeout }),
  progress_timeout: ({ progressTimeout }) => set({ progressTimeout }),
  retry: ({ retry }) => set({ retry }),
  retention: ({ retention }) => set({ retention }),
};

const FIELD_NAMES = new Map<string, string>(TaskPolicySchema.fields.map(({ name, localName }) => [localName, name]));

export function readUpdatePolicy(request: UpdatePolicyRequest): IntentCommand {
  const { generationId } = request;
  const policy = request.policy ?? create(TaskPolicySchema);
  const paths = request.updateMask?.paths ?? [];
  const fields = paths.length > 0 ? namedFields(paths) : setFields(policy);
  if (fields.length === 0) throw malformedField('policy', 'names nothing to change');
  // Only what changes is read: the rest of a policy that was read, edited and sent back is none of this call's business.
  const changes = Object.assign(create(TaskPolicySchema), ...fields.map((field) => PARTS[field](policy))) as TaskPolicy;
  return {
    taskId: requiredTaskId('task_id', request.taskId),
    key: readKey('idempotency_key', request.idempotencyKey),
    intent: {
      kind: 'update_policy',
      fields,
      values: checked(resolvePolicy(readPolicy('policy', changes)), 'policy.'),
    },
    guards: {
      generationId: generationId === undefined ? null : requiredTaskId('generation_id', generationId),
      fromStatus: null,
      expectedRevision: readRevision(request.expectedRevision),
      epoch: null,
    },
    lease: null,
    cause: readCause('cause', request.cause),
  };
}

function namedFields(paths: readonly string[]): readonly PolicyField[] {
  const named = new Set(paths);
  for (const path of named) if (!isChangeable(path)) throw malformedField('update_mask', `${path} cannot be changed`);
  return changeable((field) => named.has(field));
}

function setFields(policy: TaskPolicy): readonly PolicyField[] {
  const named = new Set<string>();
  for (const [member, value] of Object.entries(policy)) {
    const name = FIELD_NAMES.get(member);
    if (name === undefined || !isSet(value)) continue;
    if (!isChangeable(name)) throw malformedField(`policy.${name}`, 'cannot be changed');
    named.add(name);
  }
  return changeable((field) => named.has(field));
}

/** In one order, so that the same change is the same content. */
function changeable(wanted: (field: PolicyField) => boolean): readonly PolicyField[] {
  return POLICY_FIELDS.filter(wanted);
}

const POLICY_FIELDS = Object.keys(CHANGEABLE_POLICY_FIELDS).filter(isChangeable);

function isChangeable(name: string): name is PolicyField {
  return Object.hasOwn(CHANGEABLE_POLICY_FIELDS, name);
}

/** Lists and maps have no presence: empty is unset. */
function isSet(value: unknown): boolean {
  if (value === undefined) return false;
  if (Array.isArray(value)) return value.length > 0;
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0;
}

/** The member, unless it is unset: presence is what the reader of a policy goes by. */
function set<Fields extends object>(fields: { readonly [Name in keyof Fields]: Fields[Name] | undefined }): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}
