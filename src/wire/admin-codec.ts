/**
 * What operators ask of AdminService, from the wire to the domain: Verify and Repair.
 * Owns their bounds, and the binding of a page token to the tasks that were named.
 */
import { createHash } from 'node:crypto';
import type { RepairRequest, VerifyRequest } from '../gen/reeve/v1/admin_service_pb.js';
import type { RepairKind } from '../kernel/event.js';
import { boundedText } from './bounded-text.js';
import { repairKinds } from './enum-tables.js';
import { MAX_PAGE_SIZE } from './frame-limits.js';
import type { TokenMint } from './opaque-token.js';
import { malformedField } from './refusal-error.js';
import { readKey, requiredTaskId } from './transition-codec.js';

const MAX_NAMED_TASKS = 1_000;
const DEFAULT_VERIFY_PAGE = 200;
const MAX_REASON_BYTES = 1_024;

export interface VerifyCommand {
  /** Null: the whole store. */
  readonly taskIds: readonly string[] | null;
  readonly limit: number;
  /** What the token carries; null from the start. */
  readonly position: string | null;
  /** What a token for the next page is bound to. */
  readonly purpose: string;
}

export function readVerify(request: VerifyRequest, tokens: TokenMint): VerifyCommand {
  const { taskIds, pageSize, pageToken } = request;
  if (taskIds.length > MAX_NAMED_TASKS) throw malformedField('task_ids', `must not be more than ${MAX_NAMED_TASKS}`);
  if (pageSize < 0 || pageSize > MAX_PAGE_SIZE) throw malformedField('page_size', `must be from 0 to ${MAX_PAGE_SIZE}`);
  const named = taskIds.map((taskId, index) => requiredTaskId(`task_ids[${index}]`, taskId));
  const digest = createHash('sha256').update(named.join('\n')).digest('base64url');
  const purpose = `verify\n${digest}`;
  return {
    taskIds: named.length === 0 ? null : named,
    limit: pageSize === 0 ? DEFAULT_VERIFY_PAGE : pageSize,
    position: pageToken === '' ? null : tokens.read('page_token', purpose, pageToken),
    purpose,
  };
}

export interface StatedRepair {
  readonly taskId: string;
  readonly kind: RepairKind;
  /** 0 unless a payload is to be taken out. */
  readonly eventNumber: number;
  readonly reason: string;
  /** Null: `validate_only`. */
  readonly key: { readonly key: string; readonly contentHash: string } | null;
}

export function readRepair(request: RepairRequest): StatedRepair {
  const { idempotencyKey, validateOnly } = request;
  const taskId = requiredTaskId('task_id', request.taskId);
  const kind = repairKinds.read('kind', request.kind);
  const eventNumber = Number(request.eventNumber);
  const redacts = kind === 'redact_payload';
  if (redacts ? !Number.isSafeInteger(eventNumber) || eventNumber < 1 : eventNumber !== 0) {
    throw malformedField('event_number', redacts ? 'must be 1 or more' : 'only to take a payload out');
  }
  if (request.reason === '') throw malformedField('reason', 'is required');
  const reason = boundedText('reason', request.reason, MAX_REASON_BYTES);
  const key = validateOnly ? null : readKey('idempotency_key', idempotencyKey);
  const content = JSON.stringify(['repair', kind, eventNumber, reason]);
  const contentHash = `sha256:${createHash('sha256').update(content).digest('hex')}`;
  return { taskId, kind, eventNumber, reason, key: key === null ? null : { key, contentHash } };
}
