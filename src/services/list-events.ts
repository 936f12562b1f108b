/**
 * ListEvents: a task's history, oldest first, over all its generations, and on request what was said and not applied
 * (task_service.proto). A page stays below the size of a frame.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Authority } from '../authority/authority.js';
import { EventSchema } from '../gen/reeve/v1/event_pb.js';
import type { ListEventsRequest, ListEventsResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { taskPurged } from '../kernel/tombstone.js';
import { diagnosticMessage } from '../wire/diagnostic-codec.js';
import { eventMessage } from '../wire/event-codec.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import { readPageSize } from '../wire/list-codec.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError, malformedField } from '../wire/refusal-error.js';
import { requiredTaskId } from '../wire/transition-codec.js';
import { valueOf } from './task-views.js';

const ITEM_OVERHEAD_BYTES = 8;
/** 2 KiB each at most. */
const MAX_DIAGNOSTICS = 200;

type Response = Fields<typeof ListEventsResponseSchema>;

export class EventLists {
  constructor(private readonly authority: Authority) {}

  async listEvents(request: ListEventsRequest): Promise<Response> {
    const taskId = requiredTaskId('task_id', request.taskId);
    const pageSize = readPageSize(request.pageSize);
    const after = Number(request.afterEventNumber);
    if (!Number.isSafeInteger(after) || after < 0) throw malformedField('after_event_number', 'must be 0 or more');
    const { admission, lastEvent } = valueOf(await this.authority.reads.get(taskId));
    // One more than asked for tells whether there are more.
    const page = valueOf(await this.authority.reads.history(taskId, after, pageSize + 1, MAX_FRAME_BYTES));
    // The whole history is there, or none of it: what is missing was purged since the record was read.
    if (page.length === 0 && after < lastEvent) throw new RefusalError(taskPurged(taskId));
    const events: ReturnType<typeof create<typeof EventSchema>>[] = [];
    let room = MAX_FRAME_BYTES;
    let last = after;
    for (const stored of page.slice(0, pageSize)) {
      const { event } = stored;
      if (!request.aepOnly || event.aep !== null) {
        const message = create(EventSchema, eventMessage(admission, stored));
        room -= toBinary(EventSchema, message).length + ITEM_OVERHEAD_BYTES;
        if (room < 0 && events.length > 0) break;
        events.push(message);
      }
      last = event.number;
    }
    const lastRead = Math.max(page.at(-1)?.event.number ?? after, lastEvent);
    const hasMore = await this.hasMore(taskId, last, lastRead);
    const diagnostics = !hasMore && request.includeDiagnostics ? await this.diagnostics(taskId) : [];
    return { events, hasMore, diagnostics };
  }

  /** The page of the store is bounded in bytes too, and the history goes on: neither its end nor the record's is the end. */
  private async hasMore(taskId: string, last: number, lastRead: number): Promise<boolean> {
    if (last < lastRead) return true;
    return valueOf(await this.authority.reads.history(taskId, last, 1, 1)).length > 0;
  }

  private async diagnostics(taskId: string): Promise<ReturnType<typeof diagnosticMessage>[]> {
    return (await this.authority.store.readDiagnostics(taskId, MAX_DIAGNOSTICS)).map(diagnosticMessage);
  }
}
