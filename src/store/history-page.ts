/**
 * A page of a history: as many events as its bounds allow, and at least one if there is any, so that a reader always
 * gets on. One rule for all adapters.
 */
import type { StoredEvent } from './task-store.js';

/** Roughly what an event takes beside its payloads. */
const EVENT_OVERHEAD_BYTES = 256;

export function historyPage<Event extends StoredEvent>(
  events: Iterable<Event>,
  limit: number,
  maxBytes: number,
): readonly Event[] {
  const page: Event[] = [];
  let bytes = 0;
  for (const event of events) {
    bytes += EVENT_OVERHEAD_BYTES + payloadBytes(event);
    if (page.length > 0 && (page.length >= limit || bytes > maxBytes)) break;
    page.push(event);
  }
  return page;
}

function payloadBytes({ event }: StoredEvent): number {
  switch (event.type) {
    case 'task.output':
      return (event.data.outputJson?.length ?? 0) + (event.data.binaryBase64?.length ?? 0);
    case 'reeve.task.checkpoint':
      return event.data.checkpointJson.length;
    case 'reeve.task.generation_started':
    case 'reeve.task.resumed':
      return event.data.inputJson?.length ?? 0;
    case 'task.completed':
      return event.data.resultJson?.length ?? 0;
    default:
      return 0;
  }
}
