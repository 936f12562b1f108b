/**
 * What a Purge asks for, the token that continues it, and its answer as it is remembered.
 * Owns the binding of a page token to what is purged, and what makes two requests the same under one key.
 */
import { createHash } from 'node:crypto';
import type { PurgeRequest, PurgeResponseSchema } from '../gen/reeve/v1/admin_service_pb.js';
import { resolveNamespace, resolveQueue } from '../kernel/admission/identifiers.js';
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import { TASK_STATUSES, type TerminalStatus, isTerminal } from '../kernel/status.js';
import { boundedText } from './bounded-text.js';
import { statuses } from './enum-tables.js';
import type { Fields } from './message-fields.js';
import type { TokenMint } from './opaque-token.js';
import { checked, malformedField } from './refusal-error.js';
import { durationMsWithin, toTimestamp } from './time-values.js';
import { readKey } from './transition-codec.js';

const ALL_NAMESPACES = '*';
const DEFAULT_STEP_TASKS = 1_000;
const MAX_STEP_TASKS = 10_000;
const MAX_REASON_BYTES = 1_024;
const TERMINAL = TASK_STATUSES.filter(isTerminal);

/** Which finished tasks are meant. */
export interface PurgeScope {
  readonly olderThanMs: number;
  readonly statuses: readonly TerminalStatus[];
  /** Null: every namespace. */
  readonly namespace: string | null;
  readonly queue: string | null;
}

export interface PurgeCommand {
  readonly scope: PurgeScope;
  /** Null for a step that only counts. */
  readonly key: string | null;
  readonly maxTasks: number;
  readonly reason: string;
  readonly validateOnly: boolean;
  /** Admission order to continue after. */
  readonly after: number | null;
  readonly purpose: string;
  /** `sha256:<hex>` of what is asked. */
  readonly contentHash: string;
}

/** What one step did; `next` is the admission order to continue after. */
export interface PurgeStep {
  readonly purged: number;
  readonly kept: number;
  readonly next: number | null;
  readonly horizon: number;
  /** Epoch ms. */
  readonly newestFinish: number | null;
}

export function readPurge(request: PurgeRequest, tokens: TokenMint): PurgeCommand {
  const { olderThan, validateOnly, pageToken } = request;
  if (olderThan === undefined) throw malformedField('older_than', 'is required; 0 means all that are finished');
  const named = request.statuses.map((status, index) => readStatus(`statuses[${index}]`, status));
  const scope: PurgeScope = {
    olderThanMs: durationMsWithin('older_than', olderThan, 0, MAX_DURATION_MS),
    statuses: named.length === 0 ? TERMINAL : TERMINAL.filter((status) => named.includes(status)),
    namespace: request.namespace === ALL_NAMESPACES ? null : checked(resolveNamespace(request.namespace)),
    queue: request.queue === '' ? null : checked(resolveQueue(request.queue)),
  };
  const purpose = `purge\n${digestOf(scope).toString('base64url')}`;
  const after = pageToken === '' ? null : Number(tokens.read('page_token', purpose, pageToken));
  const maxTasks = readMaxTasks(request.maxTasks);
  const reason = boundedText('reason', request.reason, MAX_REASON_BYTES);
  return {
    scope,
    key: validateOnly ? null : readKey('idempotency_key', request.idempotencyKey),
    maxTasks,
    reason,
    validateOnly,
    after,
    purpose,
    contentHash: `sha256:${digestOf(['purge', scope, maxTasks, reason, after]).toString('hex')}`,
  };
}

function readStatus(field: string, value: number): TerminalStatus {
  const status = statuses.read(field, value);
  if (!isTerminal(status)) throw malformedField(field, 'only what has ended can be purged');
  return status;
}

function readMaxTasks(maxTasks: number): number {
  if (maxTasks === 0) return DEFAULT_STEP_TASKS;
  if (maxTasks < 1 || maxTasks > MAX_STEP_TASKS)
    throw malformedField('max_tasks', `must be from 1 to ${MAX_STEP_TASKS}`);
  return maxTasks;
}

function digestOf(value: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(value)).digest();
}

export function purgeMessage(
  { purged, kept, next, horizon, newestFinish }: PurgeStep,
  { purpose }: PurgeCommand,
  tokens: TokenMint,
  replayed: boolean,
): Fields<typeof PurgeResponseSchema> {
  return {
    purged: BigInt(purged),
    kept: BigInt(kept),
    more: next !== null,
    replayed,
    horizon: BigInt(horizon),
    ...(newestFinish === null ? {} : { newestFinishTime: toTimestamp(newestFinish) }),
    nextPageToken: next === null ? '' : tokens.give(purpose, String(next)),
  };
}

/** The answer as it is kept under its key; written and read here alone. */
export function encodeStep(step: PurgeStep): string {
  return JSON.stringify(step);
}

export function decodeStep(json: string): PurgeStep {
  return JSON.parse(json) as PurgeStep;
}
