/**
 * ListWorkers and DrainWorker: who is there, what each holds, and letting them finish (worker_service.proto).
 * The rows of the store are the truth about sessions; what is attached here adds what no row has.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import {
  type DrainWorkerRequest,
  type DrainWorkerResponseSchema,
  type ListWorkersRequest,
  type ListWorkersResponseSchema,
  type WorkerSession,
  WorkerSessionSchema,
} from '../gen/reeve/v1/worker_service_pb.js';
import { refuse } from '../kernel/refusal.js';
import type { SessionRow } from '../store/commit-plan.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import { RefusalError } from '../wire/refusal-error.js';
import { sessionAlias } from '../wire/session-alias.js';
import {
  type DrainCommand,
  isWanted,
  placeOf,
  readDrainWorker,
  readListWorkers,
  type SessionPresence,
  workerSessionMessage,
} from '../wire/worker-session-codec.js';
import type { CallContext } from './call.js';
import { valueOf } from './task-views.js';

/** Sessions looked at in one call: far above what one server holds. */
const MAX_SESSIONS = 100_000;
const HELD_PAGE = 500;
/** Tag and length of a session in the page. */
const ITEM_OVERHEAD_BYTES = 8;
/** Drains whose key is remembered, the latest; a drain is a drain for ever, so what is forgotten does little harm. */
const MAX_REMEMBERED_DRAINS = 10_000;

export interface WorkersContext {
  readonly authority: Authority;
  readonly dispatcher: Dispatcher;
  readonly tokens: TokenMint;
  /** For the log: who let which sessions finish, and why. */
  readonly onDrained: (details: Readonly<Record<string, unknown>>) => void;
}

interface Drain {
  readonly content: string;
  readonly sessionIds: Promise<readonly string[]>;
}

export class Workers {
  private readonly drains = new Map<string, Drain>();

  constructor(private readonly context: WorkersContext) {}

  async list(request: ListWorkersRequest): Promise<Fields<typeof ListWorkersResponseSchema>> {
    const { tokens } = this.context;
    const command = readListWorkers(request, tokens);
    const { after, pageSize, purpose } = command;
    const rows = (await this.rows())
      .filter((row) => isWanted(row, command))
      .map((row) => ({ row, place: placeOf(row) }))
      .filter(({ place }) => after === null || place > after)
      .sort((left, right) => (left.place < right.place ? -1 : 1));
    const workers: WorkerSession[] = [];
    let room = MAX_FRAME_BYTES;
    let last = '';
    for (const { row, place } of rows) {
      const worker = await this.show(row);
      room -= toBinary(WorkerSessionSchema, worker).length + ITEM_OVERHEAD_BYTES;
      if (workers.length === pageSize || (room < 0 && workers.length > 0)) {
        return { workers, nextPageToken: tokens.give(purpose, last) };
      }
      workers.push(worker);
      last = place;
    }
    return { workers, nextPageToken: '' };
  }

  async drain(request: DrainWorkerRequest, context: CallContext): Promise<Fields<typeof DrainWorkerResponseSchema>> {
    const command = readDrainWorker(request);
    const content = JSON.stringify(command);
    const known = this.drains.get(command.key);
    if (known !== undefined && known.content !== content) throw new RefusalError(keyConflict(command.key));
    const sessionIds = await (known?.sessionIds ?? this.remember(command, content, context.principal));
    const rows = await Promise.all(sessionIds.map((sessionId) => this.context.authority.store.loadSession(sessionId)));
    const workers = await Promise.all(rows.filter((row) => row !== null).map((row) => this.show(row)));
    return { workers, replayed: known !== undefined };
  }

  private remember(command: DrainCommand, content: string, principal: string): Promise<readonly string[]> {
    const [oldest] = this.drains.keys();
    if (this.drains.size >= MAX_REMEMBERED_DRAINS && oldest !== undefined) this.drains.delete(oldest);
    const sessionIds = this.drainThem(command, principal);
    this.drains.set(command.key, { content, sessionIds });
    // What was not done is not remembered as done.
    sessionIds.catch(() => this.drains.delete(command.key));
    return sessionIds;
  }

  private async drainThem(command: DrainCommand, principal: string): Promise<readonly string[]> {
    const { alias, workerName, actor, reason } = command;
    const meant = (row: SessionRow): boolean =>
      alias === null ? row.workerName === workerName : sessionAlias(row.sessionId) === alias;
    const drained: string[] = [];
    for (const { sessionId } of (await this.rows()).filter(meant)) {
      if (valueOf(await this.context.dispatcher.drainById(sessionId))) drained.push(sessionId);
    }
    if (drained.length === 0) {
      const names: Record<string, string> = alias === null ? { worker_name: workerName } : { session_alias: alias };
      throw new RefusalError(refuse('NOT_FOUND', 'there is no such session, or it is gone', names));
    }
    this.context.onDrained({ sessions: drained.map(sessionAlias), actor, principal, reason });
    return drained;
  }

  private rows(): Promise<readonly SessionRow[]> {
    return this.context.authority.store.sessions(null, MAX_SESSIONS);
  }

  private async show(row: SessionRow): Promise<WorkerSession> {
    return create(WorkerSessionSchema, workerSessionMessage(row, await this.presenceOf(row)));
  }

  private async presenceOf({ sessionId }: SessionRow): Promise<SessionPresence> {
    const session = this.context.dispatcher.session(sessionId);
    if (session === undefined) return { attached: false, slots: 0, held: await this.heldBy(sessionId) };
    return { attached: session.attached, slots: session.wanted, held: session.held.size };
  }

  /** Counted in the store: nothing here has its stream. */
  private async heldBy(sessionId: string): Promise<number> {
    let count = 0;
    for (let after = 0; ;) {
      const page = await this.context.authority.store.tasksOfSession(sessionId, after, HELD_PAGE);
      count += page.length;
      const last = page[page.length - 1];
      if (last === undefined || page.length < HELD_PAGE) return count;
      after = last.order;
    }
  }
}

function keyConflict(key: string): ReturnType<typeof refuse> {
  return refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another drain', { idempotency_key: key });
}
