/**
 * Frames of SubmitStreamResponse, written by hand: the verdict of a new task in NAME view is the most frequent answer
 * of all (task_service.proto; field numbers as there). Anything else comes encoded and is only put in.
 */
import { eventId, transitionId } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import { statuses } from './enum-tables.js';
import { MAX_FRAME_BYTES } from './frame-limits.js';
import { ProtoWriter } from './proto-writer.js';

/** SubmitOutcome.CREATED. */
const CREATED = 1;
/** A frame is closed before the verdict that could take it beyond its limit. */
const MAX_NAME_VERDICT_BYTES = 4_096;

/** Gathers verdicts into frames below the limit; `take` gives the frame and begins the next. */
export class SubmitFrame {
  private readonly writer = new ProtoWriter();

  get isEmpty(): boolean {
    return this.writer.length === 0;
  }

  /** Whether a verdict of so many bytes still fits. */
  hasRoom(bytes = MAX_NAME_VERDICT_BYTES): boolean {
    return this.writer.length + bytes <= MAX_FRAME_BYTES;
  }

  /** A SubmitVerdict that is encoded already. */
  addEncoded(verdict: Uint8Array): void {
    this.writer.bytes(1, verdict);
  }

  /** A task just admitted, in NAME view; key and namespace as they were sent. */
  addCreated(namespace: string, idempotencyKey: string, record: TaskRecord, sequence: number): void {
    const { writer } = this;
    const { admission } = record;
    const verdict = writer.begin(1);
    writer.string(1, idempotencyKey);
    const accepted = writer.begin(2);
    const task = writer.begin(1);
    writer.string(1, admission.taskId);
    writer.integer(2, statuses.value(record.status));
    writer.integer(3, record.revision);
    const generation = writer.begin(4);
    writer.string(1, record.generationId);
    writer.integer(2, record.generation);
    writer.end(generation);
    writer.integer(5, record.lastEvent);
    writer.string(6, admission.namespace);
    writer.string(7, admission.idempotencyKey);
    writer.end(task);
    writer.integer(2, CREATED);
    writer.string(3, transitionId(admission.taskId, 1));
    const event = writer.begin(4);
    writer.string(1, eventId(admission.taskId, 1));
    writer.integer(2, sequence);
    writer.integer(3, 1);
    writer.end(event);
    writer.end(accepted);
    writer.string(4, namespace);
    writer.end(verdict);
  }

  take(): Uint8Array {
    return this.writer.take();
  }
}
