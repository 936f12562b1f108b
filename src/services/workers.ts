/**
 * ListWorkers and DrainWorker: who is there and who was, what each holds, and letting them finish (worker_service.proto).
 * The rows of the store are the truth about sessions; what is attached here adds what no row has.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type DrainWorkerRequest,
  type DrainWorkerResponseSchema,
  type ListWorkersRequest,
  type ListWorkersResponseSchema,
  type WorkerSession,
  WorkerSessionSchema,
} from '../gen/reeve/v1/worker_service_pb.js';
import type { SessionRow } from '../store/commit-plan.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import {
  type ListWorkersCommand,
  readDrainWorker,
  readListWorkers,
  type SessionPresence,
  workerSessionMessage,
} from '../wire/worker-session-codec.js';
import type { CallContext } from './call.js';
import { type DrainsContext, WorkerDrains } from './worker-drains.js';
import { type PlacedSession, WorkerPage } from './worker-page.js';

/** Sessions looked at in one call: far above what one server holds. */
const MAX_SESSIONS = 100_000;
/** The gone are many and in no hurry: what serves workers comes in between two reads. */
const GONE_PER_READ = 256;
const HELD_PAGE = 500;
/** Tag and length of a session in the page. */
const ITEM_OVERHEAD_BYTES = 8;

export interface WorkersContext extends DrainsContext {
  readonly tokens: TokenMint;
}

export class Workers {
  private readonly drains: WorkerDrains;

  constructor(private readonly context: WorkersContext) {
    this.drains = new WorkerDrains(context, () => this.rows());
  }

  async list(request: ListWorkersRequest): Promise<Fields<typeof ListWorkersResponseSchema>> {
    const { tokens } = this.context;
    const command = readListWorkers(request, tokens);
    const workers: WorkerSession[] = [];
    let room = MAX_FRAME_BYTES;
    let last = '';
    for (const { row, place } of await this.page(command)) {
      const worker = await this.show(row);
      room -= toBinary(WorkerSessionSchema, worker).length + ITEM_OVERHEAD_BYTES;
      if (workers.length === command.pageSize || (room < 0 && workers.length > 0)) {
        return { workers, nextPageToken: tokens.give(command.purpose, last) };
      }
      workers.push(worker);
      last = place;
    }
    return { workers, nextPageToken: '' };
  }

  async drain(request: DrainWorkerRequest, context: CallContext): Promise<Fields<typeof DrainWorkerResponseSchema>> {
    const { sessionIds, replayed } = await this.drains.drain(readDrainWorker(request), context.principal);
    const rows = await Promise.all(sessionIds.map((sessionId) => this.context.authority.store.loadSession(sessionId)));
    const workers = await Promise.all(rows.filter((row) => row !== null).map((row) => this.show(row)));
    return { workers, replayed };
  }

  /** Those that live are read first: who goes meanwhile is then seen twice, and shown once, as gone. */
  private async page(command: ListWorkersCommand): Promise<readonly PlacedSession[]> {
    const page = new WorkerPage(command);
    for (const row of await this.rows()) page.offer(row);
    for (let after: string | null = null, more = command.includeGone; more;) {
      const gone: readonly SessionRow[] = await this.context.authority.store.goneSessions(after, GONE_PER_READ);
      for (const row of gone) page.offer(row);
      after = gone[gone.length - 1]?.sessionId ?? null;
      more = gone.length === GONE_PER_READ;
    }
    return page.inOrder();
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
