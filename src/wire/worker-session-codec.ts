/**
 * Sessions as operators see them: ListWorkers and DrainWorker between the wire and the domain (worker_service.proto).
 * Owns what is read back from the Hello that a session keeps, and what of a session is shown: never its id or secret.
 */
import { createHash } from 'node:crypto';
import {
  type DrainWorkerRequest,
  type ListWorkersRequest,
  SessionEndCause,
  type SessionEndSchema,
  SessionState,
  type WorkerSessionSchema,
} from '../gen/reeve/v1/worker_service_pb.js';
import { EXECUTION_TARGETS } from '../kernel/admission/application.js';
import type { Actor, Reason } from '../kernel/cause.js';
import type {
  EndedSession,
  SessionEndCause as EndWord,
  SessionRow,
  SessionState as StateWord,
} from '../store/commit-plan.js';
import { readActor, readReason } from './cause-codec.js';
import { EnumTable, executionTargets } from './enum-tables.js';
import { readPageSize } from './list-codec.js';
import type { Fields } from './message-fields.js';
import type { TokenMint } from './opaque-token.js';
import { malformedField } from './refusal-error.js';
import { sessionAlias } from './session-alias.js';
import { toDuration, toTimestamp } from './time-values.js';
import { readKey } from './transition-codec.js';

const states = new EnumTable<StateWord, SessionState>({
  live: SessionState.LIVE,
  draining: SessionState.DRAINING,
  gone: SessionState.GONE,
});

const endCauses = new EnumTable<EndWord, SessionEndCause>({
  expired: SessionEndCause.EXPIRED,
  stream_ended: SessionEndCause.STREAM_ENDED,
  claim_ended: SessionEndCause.CLAIM_ENDED,
});

/** What a session said of itself; of a session without a stream all lists are empty. */
interface Hello {
  readonly version: string;
  readonly buildId: string;
  readonly namespaces: readonly string[];
  readonly queues: readonly string[];
  readonly actionKinds: readonly string[];
  readonly executionTargets: readonly string[];
  readonly capabilities: readonly string[];
  readonly features: readonly string[];
  readonly unary: boolean;
}

/** What only the process knows that has the session's stream. */
export interface SessionPresence {
  readonly attached: boolean;
  readonly slots: number;
  readonly held: number;
}

export interface ListWorkersCommand {
  readonly namespace: string;
  readonly queue: string;
  readonly actionKind: string;
  readonly workerName: string;
  readonly includeGone: boolean;
  readonly pageSize: number;
  /** The place of the last session that was shown. */
  readonly after: string | null;
  readonly purpose: string;
}

export function readListWorkers(request: ListWorkersRequest, tokens: TokenMint): ListWorkersCommand {
  const { namespace, queue, actionKind, workerName, includeGone, pageToken } = request;
  const conditions = JSON.stringify([namespace, queue, actionKind, workerName, includeGone]);
  const purpose = `workers\n${createHash('sha256').update(conditions).digest('base64url')}`;
  return {
    namespace,
    queue,
    actionKind,
    workerName,
    includeGone,
    pageSize: readPageSize(request.pageSize),
    after: pageToken === '' ? null : tokens.read('page_token', purpose, pageToken),
    purpose,
  };
}

/** Sessions are shown by name and then by alias; this text orders them so. */
export function placeOf(row: SessionRow): string {
  return `${row.workerName}\n${sessionAlias(row.sessionId)}`;
}

export function isWanted(row: SessionRow, command: ListWorkersCommand): boolean {
  const hello = helloOf(row);
  const serves = (wanted: string, served: readonly string[], all: boolean): boolean =>
    wanted === '' || (!hello.unary && (all || served.includes(wanted)));
  return (
    (command.workerName === '' || command.workerName === row.workerName) &&
    serves(command.namespace, hello.namespaces, false) &&
    serves(command.queue, hello.queues, hello.queues.length === 0) &&
    serves(command.actionKind, hello.actionKinds, hello.actionKinds.includes('*'))
  );
}

export interface DrainCommand {
  /** Null: by name. */
  readonly alias: string | null;
  readonly workerName: string;
  readonly key: string;
  readonly actor: Actor;
  readonly reason: Reason | null;
  /** `sha256:<hex>` of what is asked. */
  readonly contentHash: string;
}

export function readDrainWorker(request: DrainWorkerRequest): DrainCommand {
  const { sessionAlias: alias, workerName } = request;
  if (alias === '' && workerName === '') throw malformedField('session_alias', 'is required, or a worker_name');
  if (alias !== '' && workerName !== '') throw malformedField('worker_name', 'only without session_alias');
  const asked = {
    alias: alias === '' ? null : alias,
    workerName,
    actor: readActor('actor', request.actor) ?? ({ type: 'operator', id: '' } as const),
    reason: readReason('reason', request.reason),
  };
  const contentHash = `sha256:${createHash('sha256').update(JSON.stringify(asked)).digest('hex')}`;
  return { ...asked, key: readKey('idempotency_key', request.idempotencyKey), contentHash };
}

/** The sessions that a drain means, as they are remembered under its key. */
export function encodeDrained(sessionIds: readonly string[]): string {
  return JSON.stringify(sessionIds);
}

export function decodeDrained(text: string): readonly string[] {
  const parsed: unknown = JSON.parse(text);
  return Array.isArray(parsed) ? parsed.filter((id): id is string => typeof id === 'string') : [];
}

export function workerSessionMessage(row: SessionRow, presence: SessionPresence): Fields<typeof WorkerSessionSchema> {
  const hello = helloOf(row);
  const targets = EXECUTION_TARGETS.filter((target) => hello.executionTargets.includes(target));
  return {
    sessionAlias: sessionAlias(row.sessionId),
    workerName: row.workerName,
    version: hello.version,
    buildId: hello.buildId,
    namespaces: [...hello.namespaces],
    queues: [...hello.queues],
    actionKinds: [...hello.actionKinds],
    executionTargets: targets.map((target) => executionTargets.value(target)),
    capabilities: [...hello.capabilities],
    features: [...hello.features],
    state: states.value(row.state),
    slots: hello.unary ? 1 : presence.slots,
    held: presence.held,
    unary: hello.unary,
    attached: presence.attached,
    attachment: BigInt(hello.unary ? 0 : row.attachment),
    ttl: toDuration(row.ttlMs),
    linger: toDuration(row.lingerMs ?? row.ttlMs),
    createTime: toTimestamp(row.createdAt),
    expireTime: toTimestamp(row.expiresAt),
    ...(row.ended === undefined ? {} : { end: endMessage(row.ended) }),
  };
}

function endMessage({ at, cause, drained, held, taskIds }: EndedSession): Fields<typeof SessionEndSchema> {
  return { endTime: toTimestamp(at), cause: endCauses.value(cause), drained, held, heldTaskIds: [...taskIds] };
}

function helloOf({ helloJson }: SessionRow): Hello {
  const parsed: unknown = JSON.parse(helloJson);
  const fields: Readonly<Record<string, unknown>> =
    typeof parsed === 'object' && parsed !== null ? Object.fromEntries(Object.entries(parsed)) : {};
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
  const list = (name: string): readonly string[] => {
    const value = fields[name];
    return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
  };
  return {
    version: text('version'),
    buildId: text('build_id'),
    namespaces: list('namespaces'),
    queues: list('queues'),
    actionKinds: list('action_kinds'),
    executionTargets: list('execution_targets'),
    capabilities: list('capabilities'),
    features: list('features'),
    unary: fields['unary'] === true,
  };
}
