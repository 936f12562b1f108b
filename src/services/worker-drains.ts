/**
 * DrainWorker: which sessions a request means, and letting them finish (worker_service.proto). What it means is kept
 * under its key before any of them drains: a repetition, be it after a crash in the middle or a restart, means the same
 * sessions, and none that came since. A drain is never taken back, so doing it again does no harm.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { SessionRow } from '../store/commit-plan.js';
import type { OperationEntry } from '../store/purge-rows.js';
import { RefusalError } from '../wire/refusal-error.js';
import { sessionAlias } from '../wire/session-alias.js';
import { type DrainCommand, decodeDrained, encodeDrained } from '../wire/worker-session-codec.js';
import { OPERATION_REMEMBERED_MS } from './operation-memory.js';
import { valueOf } from './task-views.js';

/** Apart from the keys of purges: no key of a caller holds a line feed. */
const KEY_PREFIX = 'drain\n';

export interface DrainsContext {
  readonly authority: Authority;
  readonly dispatcher: Dispatcher;
  /** For the log: who let which sessions finish, and why. */
  readonly onDrained: (details: Readonly<Record<string, unknown>>) => void;
}

export interface Drained {
  /** Those that the request named the first time; some may be gone, or forgotten. */
  readonly sessionIds: readonly string[];
  readonly replayed: boolean;
}

interface Drain {
  readonly contentHash: string;
  readonly sessionIds: Promise<readonly string[]>;
}

export class WorkerDrains {
  /** Those under way by their keys: a repetition waits for the same. */
  private readonly running = new Map<string, Drain>();

  /** `rows`: the sessions that are not gone. */
  constructor(
    private readonly context: DrainsContext,
    private readonly rows: () => Promise<readonly SessionRow[]>,
  ) {}

  /** Throws RefusalError: NOT_FOUND when nobody is meant, and then the key is free; IDEMPOTENCY_CONFLICT. */
  async drain(command: DrainCommand, principal: string): Promise<Drained> {
    const { key } = command;
    const kept = this.running.has(key) ? null : await this.kept(key);
    // Another call may have begun with the key while the store was asked.
    const known = this.running.get(key) ?? kept;
    if (known !== null && known.contentHash !== command.contentHash) throw new RefusalError(keyConflict(key));
    const replayed = known !== null;
    if (known !== null && 'sessionIds' in known) return { sessionIds: await known.sessionIds, replayed };
    return { sessionIds: await this.begin(command, known, principal), replayed };
  }

  private begin(command: DrainCommand, kept: OperationEntry | null, principal: string): Promise<readonly string[]> {
    const { key, contentHash } = command;
    const meant = kept === null ? this.meant(command) : Promise.resolve(decodeDrained(kept.answerJson));
    const sessionIds = meant
      .then(async (ids) => {
        for (const sessionId of ids) valueOf(await this.context.dispatcher.drainById(sessionId));
        const { actor, reason } = command;
        if (kept === null) this.context.onDrained({ sessions: ids.map(sessionAlias), actor, principal, reason });
        return ids;
      })
      .finally(() => this.running.delete(key));
    this.running.set(key, { contentHash, sessionIds });
    return sessionIds;
  }

  /** Finds the sessions, and keeps that it is these under the key. */
  private async meant(command: DrainCommand): Promise<readonly string[]> {
    const { alias, workerName, key, contentHash } = command;
    const isMeant = (row: SessionRow): boolean =>
      alias === null ? row.workerName === workerName : sessionAlias(row.sessionId) === alias;
    const found = (await this.rows()).filter(isMeant).map(({ sessionId }) => sessionId);
    if (found.length === 0) {
      const names: Record<string, string> = alias === null ? { worker_name: workerName } : { session_alias: alias };
      throw new RefusalError(refuse('NOT_FOUND', 'there is no such session, or it is gone', names));
    }
    const { authority } = this.context;
    const at = authority.now();
    const entry = { key: `${KEY_PREFIX}${key}`, contentHash, answerJson: encodeDrained(found), at };
    const answer = await authority.upkeep.keepOperation({ entry, forgetBefore: at - OPERATION_REMEMBERED_MS });
    if (answer.kind === 'refused') throw new RefusalError(answer.refusal);
    // Another process may have been first: what stands is what counts.
    const stands = await this.kept(key);
    if (stands !== null && stands.contentHash !== contentHash) throw new RefusalError(keyConflict(key));
    return stands === null ? found : decodeDrained(stands.answerJson);
  }

  private async kept(key: string): Promise<OperationEntry | null> {
    return valueOf(await this.context.authority.reads.operation(`${KEY_PREFIX}${key}`));
  }
}

function keyConflict(key: string): Refusal {
  return refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another drain', { idempotency_key: key });
}
