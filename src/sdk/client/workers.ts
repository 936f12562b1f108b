/**
 * Workers as operators see them: listing their sessions, and letting them finish.
 */
import { create } from '@bufbuild/protobuf';
import { v7 as uuidv7 } from 'uuid';
import {
  type DrainWorkerRequest,
  DrainWorkerRequestSchema,
  type DrainWorkerResponse,
  type ListWorkersRequest,
  ListWorkersRequestSchema,
  type ListWorkersResponse,
  type WorkerSession as WorkerSessionMessage,
} from '../../gen/reeve/v1/worker_service_pb.js';
import { durationToMs, toDate } from '../transport/time.js';
import { type Caused, toCause } from './requests.js';
import type { CallerActor } from './submission.js';
import { type ExecutionTargetWord, sessionWords, type SessionStateWord, targetWords } from './words.js';

/** One worker's presence. */
export interface WorkerSession {
  /** Names the session to everybody, and proves nothing to anybody. */
  readonly sessionAlias: string;
  readonly workerName: string;
  readonly version: string;
  readonly buildId: string;
  readonly namespaces: readonly string[];
  /** Empty: all. */
  readonly queues: readonly string[];
  /** `*`: all. */
  readonly kinds: readonly string[];
  /** Empty: all. */
  readonly targets: readonly (ExecutionTargetWord | 'unknown')[];
  readonly capabilities: readonly string[];
  readonly features: readonly string[];
  readonly state: SessionStateWord | 'unknown';
  /** Claims it wants to hold at once, and those that it holds. */
  readonly slots: number;
  readonly held: number;
  /** One claim, taken by Transition and renewed by Report. */
  readonly unary: boolean;
  readonly attached: boolean;
  readonly attachment: number;
  readonly ttlMs: number;
  readonly lingerMs: number;
  readonly createTime: Date | undefined;
  /** When it ends unless it is heard from. */
  readonly expireTime: Date | undefined;
}

/** Every condition that is set must hold. */
export interface ListWorkersOptions {
  readonly namespace?: string;
  readonly queue?: string;
  readonly kind?: string;
  readonly workerName?: string;
  /** Sessions per round trip. 1 … 1,000; default 100. */
  readonly pageSize?: number;
  readonly signal?: AbortSignal;
}

/** One session, or all of a name. */
export type DrainScope = { readonly sessionAlias: string } | { readonly workerName: string };

export interface DrainWorkerOptions extends Omit<Caused, 'causationId'> {
  /** Names this request. Default: a new UUIDv7. */
  readonly requestId?: string;
}

export interface Drained {
  /** As they are now. */
  readonly workers: readonly WorkerSession[];
  readonly replayed: boolean;
}

export async function* listWorkers(
  page: (request: ListWorkersRequest) => Promise<ListWorkersResponse>,
  options: ListWorkersOptions,
): AsyncGenerator<WorkerSession, void, undefined> {
  const { namespace = '', queue = '', kind: actionKind = '', workerName = '', pageSize } = options;
  let pageToken = '';
  do {
    const conditions = { namespace, queue, actionKind, workerName, pageToken };
    const request = create(ListWorkersRequestSchema, { ...conditions, ...(pageSize !== undefined && { pageSize }) });
    const response = await page(request);
    for (const worker of response.workers) yield readWorkerSession(worker);
    pageToken = response.nextPageToken;
  } while (pageToken !== '');
}

export function toDrainRequest(
  scope: DrainScope,
  options: DrainWorkerOptions,
  actor: CallerActor | undefined,
): DrainWorkerRequest {
  const cause = toCause(options, 'app.sdk.drain', actor);
  return create(DrainWorkerRequestSchema, {
    ...scope,
    idempotencyKey: options.requestId ?? uuidv7(),
    ...(cause.reason !== undefined && { reason: cause.reason }),
    ...(cause.actor !== undefined && { actor: cause.actor }),
  });
}

export function readDrained({ workers, replayed }: DrainWorkerResponse): Drained {
  return { workers: workers.map(readWorkerSession), replayed };
}

function readWorkerSession(session: WorkerSessionMessage): WorkerSession {
  return {
    sessionAlias: session.sessionAlias,
    workerName: session.workerName,
    version: session.version,
    buildId: session.buildId,
    namespaces: session.namespaces,
    queues: session.queues,
    kinds: session.actionKinds,
    targets: session.executionTargets.map((target) => targetWords.word(target) ?? 'unknown'),
    capabilities: session.capabilities,
    features: session.features,
    state: sessionWords.word(session.state) ?? 'unknown',
    slots: session.slots,
    held: session.held,
    unary: session.unary,
    attached: session.attached,
    attachment: Number(session.attachment),
    ttlMs: durationToMs(session.ttl) ?? 0,
    lingerMs: durationToMs(session.linger) ?? 0,
    createTime: toDate(session.createTime),
    expireTime: toDate(session.expireTime),
  };
}
