/**
 * Verdicts of one SubmitStream on their way out: as names into the next frame, or encoded first.
 * Owns what is held for a client that does not read: an answer is read and encoded only while there is room for it in
 * a budget of bytes, so that a thousand replays of a large task wait as a thousand names and not as a thousand tasks.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { SubmitAnswer } from '../authority/submit-work.js';
import { type SubmitStreamResponseSchema, SubmitVerdictSchema } from '../gen/reeve/v1/task_service_pb.js';
import type { View } from '../wire/enum-tables.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import { SubmitFrame } from '../wire/submit-frame.js';
import type { StreamCall } from './call.js';
import type { SubmissionName, Submissions } from './submit.js';
import { MAX_LARGE_TEXT_BYTES } from './task-views.js';

/** Verdicts wait here, not in the transport, while the reader is behind. */
const MAX_PENDING_BYTES = 262_144;
/** Encoded verdicts that one stream keeps, those being encoded counted at their largest. */
export const MAX_ENCODED_BYTES = 8 * 1_048_576;
/** What an answer takes at most in a frame, by its view: a refusal or a name, the texts of a BASIC task, all. */
const NAME_BYTES = 4_096;
const BASIC_BYTES = 262_144;
const FULL_BYTES = MAX_LARGE_TEXT_BYTES + BASIC_BYTES;
/** Tag and length of a verdict in its frame. */
const ITEM_OVERHEAD_BYTES = 16;

/** A submission that was judged, and how its answer is to be shown. */
export interface Judged extends SubmissionName {
  /** What it counts in the window of the stream, in bytes. */
  readonly weight: number;
  readonly answer: SubmitAnswer;
  readonly view: View;
}

type Created = Extract<SubmitAnswer, { kind: 'created' }>;

/** Of a new task by name, or encoded. */
type Ready =
  { readonly judged: Judged; readonly created: Created } | { readonly judged: Judged; readonly encoded: Uint8Array };

export interface VerdictOutboxOptions {
  readonly call: StreamCall<typeof SubmitStreamResponseSchema>;
  readonly submissions: Submissions;
  /** The verdict was handed to the transport. */
  readonly onSent: (judged: Judged) => void;
  readonly onFlushed: () => void;
  readonly onError: (error: unknown) => void;
}

export class VerdictOutbox {
  private readonly frame = new SubmitFrame();
  private unencoded: Judged[] = [];
  private ready: Ready[] = [];
  /** Of the verdicts that are encoded and not sent, and of those being encoded. */
  private encodedBytes = 0;
  private flushing = false;
  private over = false;

  constructor(private readonly options: VerdictOutboxOptions) {}

  /** The commonest answer is written straight into the frame; any other may need a read first. */
  add(judged: Judged): void {
    if (this.over) return;
    const { answer, view } = judged;
    if (answer.kind === 'created' && view === 'name') return this.take({ judged, created: answer });
    this.unencoded.push(judged);
    this.encodeWithinBudget();
  }

  flush(): void {
    this.flushing = false;
    const { call } = this.options;
    if (this.over || call.pendingBytes > MAX_PENDING_BYTES) return;
    const { frame } = this;
    const waiting = this.ready;
    this.ready = [];
    let sent = 0;
    for (const ready of waiting) {
      if (!frame.hasRoom('encoded' in ready ? ready.encoded.length + ITEM_OVERHEAD_BYTES : undefined)) {
        call.sendEncoded(frame.take());
        if (call.pendingBytes > MAX_PENDING_BYTES) break;
      }
      this.put(ready);
      sent += 1;
    }
    if (!frame.isEmpty) call.sendEncoded(frame.take());
    if (sent < waiting.length) this.ready = [...waiting.slice(sent), ...this.ready];
    this.encodeWithinBudget();
    this.options.onFlushed();
  }

  close(): void {
    this.over = true;
    this.unencoded = [];
    this.ready = [];
  }

  private put(ready: Ready): void {
    const { judged } = ready;
    if ('encoded' in ready) {
      this.frame.addEncoded(ready.encoded);
      this.encodedBytes -= ready.encoded.length;
    } else {
      const { record, sequence } = ready.created;
      this.frame.addCreated(judged.namespace, judged.idempotencyKey, record, sequence);
    }
    this.options.onSent(judged);
  }

  private encodeWithinBudget(): void {
    let begun = 0;
    for (const judged of this.unencoded) {
      const largest = largestBytes(judged);
      // One at least, however large.
      if (this.encodedBytes > 0 && this.encodedBytes + largest > MAX_ENCODED_BYTES) break;
      begun += 1;
      this.encodedBytes += largest;
      this.encode(judged, judged.view).then(
        (encoded) => {
          this.encodedBytes += encoded.length - largest;
          this.take({ judged, encoded });
          this.encodeWithinBudget();
        },
        (error: unknown) => this.options.onError(error),
      );
    }
    if (begun > 0) this.unencoded = this.unencoded.slice(begun);
  }

  private async encode(judged: Judged, view: View): Promise<Uint8Array> {
    const verdict = create(SubmitVerdictSchema, await this.options.submissions.verdict(judged, judged.answer, view));
    const encoded = toBinary(SubmitVerdictSchema, verdict);
    // Only a known task can be this large, with a result of its own: then the frame has room for less of it.
    const fits = encoded.length <= MAX_FRAME_BYTES - ITEM_OVERHEAD_BYTES;
    return fits || view !== 'full' ? encoded : this.encode(judged, 'basic');
  }

  private take(ready: Ready): void {
    if (this.over) return;
    this.ready.push(ready);
    if (this.flushing) return;
    this.flushing = true;
    // The answers of one commit come within one turn: they leave as one frame.
    queueMicrotask(() => this.flush());
  }
}

function largestBytes({ answer, view, idempotencyKey, namespace }: Judged): number {
  const named = NAME_BYTES + idempotencyKey.length + namespace.length;
  if (answer.kind === 'refused' || answer.kind === 'purged' || view === 'name') return named;
  if (view === 'basic') return named + BASIC_BYTES;
  const { argsJson } = answer.record.admission.application;
  return named + (answer.kind === 'created' ? BASIC_BYTES + argsJson.length : FULL_BYTES);
}
