/**
 * Tasks as answers show them: the record, and what a view needs beside it, read from the history and the sessions.
 * Owns which of the large texts are left out when a FULL task would not fit a message (quality.md, "Wire limits").
 */
import type { Authority, Read } from '../authority/authority.js';
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { View } from '../wire/enum-tables.js';
import { RefusalError } from '../wire/refusal-error.js';
import { NO_EXTRAS, type TaskExtras, type TaskFields, taskMessage } from '../wire/task-codec.js';

/** Args, result, checkpoint and input together stay below this, so that a FULL task fits a message of 4 MiB. */
const MAX_LARGE_TEXT_BYTES = 3_500_000;

/** The value read, or its refusal thrown. */
export function valueOf<Value>(read: Read<Value>): Value {
  if (read.ok) return read.value;
  throw new RefusalError(read.refusal);
}

export class TaskViews {
  constructor(private readonly authority: Authority) {}

  async show(record: TaskRecord, view: View): Promise<TaskFields> {
    if (view === 'name') return taskMessage(record, view);
    const leaseExpiresAt = await this.leaseExpiry(record);
    if (view === 'basic') return taskMessage(record, view, { ...NO_EXTRAS, leaseExpiresAt });
    return taskMessage(record, view, await this.largeTexts(record, leaseExpiresAt));
  }

  /** Renewals write no task: the session's row is what says when a lease ends. */
  private async leaseExpiry(record: TaskRecord): Promise<number | null> {
    if (record.lease === null) return null;
    const session = await this.authority.store.loadSession(record.lease.sessionId);
    return session?.expiresAt ?? null;
  }

  /** The result comes first; what no longer fits is left out, the resume input before the checkpoint. */
  private async largeTexts(record: TaskRecord, leaseExpiresAt: number | null): Promise<TaskExtras> {
    const { taskId, application } = record.admission;
    let room = MAX_LARGE_TEXT_BYTES - Buffer.byteLength(application.argsJson);
    const text = async (number: number | null, pick: (event: TaskEvent) => string | null): Promise<string | null> => {
      if (number === null) return null;
      const stored = valueOf(await this.authority.event(taskId, number));
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

function resultOf(event: TaskEvent): string | null {
  return 'resultJson' in event.data ? event.data.resultJson : null;
}

function checkpointOf(event: TaskEvent): string | null {
  return 'checkpointJson' in event.data ? event.data.checkpointJson : null;
}

function inputOf(event: TaskEvent): string | null {
  return 'inputJson' in event.data ? event.data.inputJson : null;
}
