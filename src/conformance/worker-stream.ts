/**
 * One Work stream as the kit's server has it: frames in with their sizes, frames out with their numbers. What holds
 * for every stream is judged here (Hello first and once, growing numbers, no frame too large), and nothing else.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Metadata, type ServerDuplexStream, type status } from '@grpc/grpc-js';
import { ErrorInfoSchema } from '../gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../gen/google/rpc/status_pb.js';
import { type WorkRequest, WorkRequestSchema, WorkResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';

export type WorkerFrame = Exclude<WorkRequest['frame'], { case: undefined }>;
export type FrameWord = WorkerFrame['case'];
export type FrameOf<Word extends FrameWord> = Extract<WorkerFrame, { case: Word }>['value'];
export type ServerFrame = Exclude<MessageInitShape<typeof WorkResponseSchema>['frame'], undefined>;
export type WorkCall = ServerDuplexStream<Buffer, Buffer>;

export interface StreamListener {
  readonly onFrame: (stream: WorkerStream, frame: WorkerFrame, frameId: bigint) => void;
  readonly onHalfClose: (stream: WorkerStream) => void;
  readonly onViolation: (what: string) => void;
}

/** A frame by the contract: 1.5 MiB. */
export const MAX_FRAME_BYTES = 1_572_864;
const FRAME_ID_FIELD = WorkResponseSchema.field.frameId.number;
/** A number that no kind of frame has in this version, nor will have soon. */
const UNKNOWN_FRAME_FIELD = 1_000;

export class WorkerStream {
  readonly heard: WorkerFrame[] = [];
  isOver = false;
  private readonly lastIds = new Map<FrameWord, bigint>();
  private lastHeardId = 0n;
  private lastSaidId = 0;

  constructor(
    private readonly call: WorkCall,
    private readonly listener: StreamListener,
  ) {
    call.on('data', (bytes: Buffer) => this.hear(bytes));
    call.on('end', () => listener.onHalfClose(this));
    for (const event of ['close', 'cancelled', 'error']) call.on(event, () => (this.isOver = true));
  }

  /** Returns the frame's number. */
  send(frame: ServerFrame): number {
    this.lastSaidId += 1;
    const message = create(WorkResponseSchema, { frameId: BigInt(this.lastSaidId), frame });
    this.write(toBinary(WorkResponseSchema, message));
    return this.lastSaidId;
  }

  /** A frame of a kind that a later version may have. Returns its number. */
  sendUnknown(): number {
    this.lastSaidId += 1;
    const writer = new BinaryWriter();
    writer.tag(FRAME_ID_FIELD, WireType.Varint).int64(this.lastSaidId);
    writer.tag(UNKNOWN_FRAME_FIELD, WireType.LengthDelimited).string('from the future');
    this.write(writer.finish());
    return this.lastSaidId;
  }

  end(): void {
    if (!this.isOver) this.call.end();
    this.isOver = true;
  }

  refuse(code: status, reason: string): void {
    const info = create(ErrorInfoSchema, { reason, domain: 'reeve.dev' });
    const message = 'refused by the conformance kit';
    const details = [anyPack(ErrorInfoSchema, info)];
    const metadata = new Metadata();
    const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
    metadata.set('grpc-status-details-bin', Buffer.from(bytes));
    this.isOver = true;
    this.call.emit('error', { code, details: message, metadata });
  }

  /** The number of the last frame of this kind; 0 when there was none. */
  lastFrameOf(word: FrameWord): bigint {
    return this.lastIds.get(word) ?? 0n;
  }

  /** Reads nothing more until `listen`. */
  ignore(): void {
    this.call.pause();
  }

  listen(): void {
    this.call.resume();
  }

  private write(bytes: Uint8Array): void {
    if (!this.isOver) this.call.write(Buffer.from(bytes));
  }

  private hear(bytes: Buffer): void {
    const { onViolation } = this.listener;
    const message = this.read(bytes);
    if (message === null) return;
    const { frameId, frame } = message;
    const what = `the ${frame.case ?? 'unknown'} frame ${frameId}`;
    if (bytes.length > MAX_FRAME_BYTES)
      onViolation(`${what} has ${bytes.length} bytes, ${MAX_FRAME_BYTES} are allowed`);
    if (frameId <= this.lastHeardId) onViolation(`${what} comes after frame ${this.lastHeardId}: numbers grow from 1`);
    this.lastHeardId = frameId;
    if (frame.case === undefined) return onViolation(`${what} is of no kind that this version has`);
    if ((frame.case === 'hello') !== (this.heard.length === 0)) {
      onViolation(`${what}: Hello is the first frame of a stream and no later one`);
    }
    this.heard.push(frame);
    this.lastIds.set(frame.case, frameId);
    this.listener.onFrame(this, frame, frameId);
  }

  private read(bytes: Buffer): WorkRequest | null {
    try {
      return fromBinary(WorkRequestSchema, bytes);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const after = `${bytes.length} bytes after frame ${this.lastHeardId}`;
      this.listener.onViolation(`sent ${after} that are no WorkRequest: ${why}`);
      return null;
    }
  }
}
