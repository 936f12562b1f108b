/**
 * Tasks as answers show them: the record, and what a view needs beside it, read from the history and the sessions.
 * Owns which of the large texts are left out when a FULL task would not fit a message (quality.md, "Wire limits").
 */
import type { Authority } from '../authority/authority.js';
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { View } from '../wire/enum-tables.js';
import { NO_EXTRAS, type TaskExtras, type TaskFields, taskMessage } from '../wire/task-codec.js';
import { valueOf } from './value-of.js';

/** Args, result, checkpoint and input together stay below this, so that a FULL task fits a message of 4 MiB. */
export const MAX_LARGE_TEXT_BYTES = 3_500_000;

export { valueOf } from './value-of.js';

export class TaskViews {
  constructor(private readonly authority: Authority) {}

  /** For the tasks of one call: each session is read once. */
  leaseExpiries(): LeaseExpiries {
    return new LeaseExpiries(this.authority);
  }

  async show(record: TaskRecord, view: View, leases = this.leaseExpiries()): Promise<TaskFields> {
    if (view === 'name') return taskMessage(record, view);
    const leaseExpiresAt = await leases.of(record);
    if (view === 'basic') return taskMessage(record, view, { ...NO_EXTRAS, leaseExpiresAt });
    return taskMessage(record, view, await this.largeTexts(record, leaseExpiresAt));
  }

  /** The result comes first; what no longer fits is left out, the resume input before the checkpoint. */
  private async largeTexts(record: TaskRecord, leaseExpiresAt: number | null): Promise<TaskExtras> {
    const { taskId, application } = record.admission;
    let room = MAX_LARGE_TEXT_BYTES - Buffer.byteLength(application.argsJson);
    const text = async (number: number | null, pick: (event: TaskEvent) => string | null): Promise<string | null> => {
      if (number === null) return null;
      const stored = valueOf(await this.authority.reads.event(taskId, number));
      const found = stored === null ? null : pick(stored.event);
      const size = found === null ? 0 : Buffer.byteLength(found);
      if (size > room) return null;
      room -= size;
      return found;
    };
    const resultJson = await text(record.resultEvent, resultOf);
    const checkpointJson = await text(record.checkpointEvent, checkpointOf);
    const inputJson = await text(record.inputEvent, inputOf);
    return { leaseExpiresAt, resultJson, checkpointJson, inputJson };
  }
}

/** When leases end, as the rows of their sessions say: renewals write no task. */
export class LeaseExpiries {
  private readonly bySession = new Map<string, Promise<number | null>>();

  constructor(private readonly authority: Authority) {}

  of({ lease }: TaskRecord): Promise<number | null> {
    if (lease === null) return Promise.resolve(null);
    const { sessionId } = lease;
    let expiry = this.bySession.get(sessionId);
    if (expiry === undefined) {
      expiry = this.authority.store.loadSession(sessionId).then((session) => session?.expiresAt ?? null);
      this.bySession.set(sessionId, expiry);
    }
    return expiry;
  }
}

function resultOf(event: TaskEvent): string | null {
  return 'resultJson' in event.data ? event.data.resultJson : null;
}

function checkpointOf(event: TaskEvent): string | null {
  return 'checkpointJson' in event.data ? event.data.checkpointJson : null;
}

function inputOf(event: TaskEvent): string | null {
  return 'inputJson' in event.data ? event.data.inputJson : null;
}
