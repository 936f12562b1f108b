/**
 * A change of policy as users write it: what is given changes, null returns to the default, the rest stays.
 */
import { create } from '@bufbuild/protobuf';
import { v7 as uuidv7 } from 'uuid';
import { type UpdatePolicyRequest, UpdatePolicyRequestSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { type Caused, toCause } from './requests.js';
import { type CallerActor, type PolicySettings, toPolicy } from './submission.js';
import { type TaskViewWord, viewWords } from './words.js';

const FIELDS = {
  priority: 'priority',
  labels: 'labels',
  description: 'description',
  timeoutMs: 'timeout',
  startByMs: 'start_by',
  notBefore: 'not_before',
  attemptTimeoutMs: 'attempt_timeout',
  progressTimeoutMs: 'progress_timeout',
  retry: 'retry',
  retentionMs: 'retention',
} as const satisfies Partial<Record<keyof PolicySettings, string>>;

type Field = keyof typeof FIELDS;

/** `labels` and `retry` change as a whole. */
export type PolicyChanges = { readonly [Name in Field]?: PolicySettings[Name] | null };

export interface UpdatePolicyOptions extends Caused {
  /** Names this request for this task. Default: a new UUIDv7. */
  readonly requestId?: string;
  /** Guard: the generation that is meant. */
  readonly generationId?: string;
  /** Guard: the revision it must have. */
  readonly expectedRevision?: number;
  readonly view?: TaskViewWord;
}

export function toUpdatePolicyRequest(
  taskId: string,
  changes: PolicyChanges,
  options: UpdatePolicyOptions,
  actor: CallerActor | undefined,
): UpdatePolicyRequest {
  const { requestId = uuidv7(), generationId, expectedRevision, view } = options;
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const settings: PolicySettings = Object.fromEntries(given.filter(([, value]) => value !== null));
  const paths = given.map(([name]) => {
    if (!isField(name)) throw new TypeError(`"${name}" is none of ${Object.keys(FIELDS).join(', ')}`);
    return FIELDS[name];
  });
  return create(UpdatePolicyRequestSchema, {
    taskId,
    idempotencyKey: requestId,
    ...(generationId !== undefined && { generationId }),
    ...(expectedRevision !== undefined && { expectedRevision: BigInt(expectedRevision) }),
    policy: toPolicy(settings) ?? {},
    updateMask: { paths },
    cause: toCause(options, 'app.sdk.update_policy', actor),
    ...(view !== undefined && { view: viewWords.value(view) }),
  });
}

function isField(name: string): name is Field {
  return Object.hasOwn(FIELDS, name);
}
