/**
 * One stream from Hello to its end: the frames' numbers, the heartbeats, and the watch over the server's silence.
 * What frames mean is the listener's; a frame that this version does not know is answered here.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ErrorReason } from '../../gen/reeve/v1/error_reason_pb.js';
import {
  type ClaimRef,
  type Hello,
  type HelloSchema,
  ReleasedClaimSchema,
  ReleaseSchema,
  type ServerHeartbeat,
  type Welcome,
  WorkRequestSchema,
  type WorkResponse,
} from '../../gen/reeve/v1/worker_service_pb.js';
import { encodeFrame, type FrameShape, MAX_FRAME_BYTES, sizeInFrame } from '../transport/frame-bytes.js';
import { ReeveError } from '../transport/reeve-error.js';
import { durationToMs } from '../transport/time.js';
import type { Link, OpenLink } from './link.js';
import type { EventSink } from './outbox.js';

type Frame = Exclude<MessageInitShape<typeof WorkRequestSchema>['frame'], undefined>;
export type HelloInit = Exclude<MessageInitShape<typeof HelloSchema>, Hello>;
/** What the server says about the work itself. */
export type WorkFrame = Exclude<WorkResponse['frame'], { case: 'welcome' | 'heartbeat' | undefined }>;

export interface AttachmentListener {
  onWelcome(welcome: Welcome): void;
  onWork(frame: WorkFrame): void;
  /** The session lives one TTL from `sentAtMs` (epoch ms) on. */
  onRenewed(sentAtMs: number): void;
  onUnknownFrame(frameId: number): void;
  onDrain(): void;
  /** Before `ended` resolves. */
  onEnd(): void;
  held(): Pick<ClaimRef, 'taskId' | 'epoch'>[];
}

/** For Hello to be answered, ms. */
const WELCOME_TIMEOUT_MS = 15_000;
/** Silence is noticed soon after its limit, and not at the next heartbeat: by then the session has expired. */
const LOOKS_PER_INTERVAL = 4;
/** Heartbeats whose answers are awaited; older ones no longer matter. */
const MAX_UNANSWERED_HEARTBEATS = 16;

const releaseShape: FrameShape = {
  frameIdField: WorkRequestSchema.field.frameId.number,
  wrapperField: WorkRequestSchema.field.release.number,
  itemField: ReleaseSchema.field.claims.number,
};

export class Attachment implements EventSink {
  maxFrameBytes = MAX_FRAME_BYTES;
  /** Resolves once, with why. */
  readonly ended: Promise<ReeveError>;
  private readonly link: Link;
  private frameId = 0;
  private timer: NodeJS.Timeout;
  private readonly heartbeats = new Map<number, number>();
  private heardAt = performance.now();
  private beatAt = performance.now();
  private lookedAt = performance.now();
  private localEnding: ReeveError | null = null;

  constructor(
    open: OpenLink,
    hello: HelloInit,
    private readonly listener: AttachmentListener,
  ) {
    let end: (ending: ReeveError) => void = () => undefined;
    this.ended = new Promise((resolve) => (end = resolve));
    this.link = open({
      onFrame: (frame) => this.receive(frame),
      onDrain: () => listener.onDrain(),
      onEnd: (ending) => {
        clearTimeout(this.timer);
        listener.onEnd();
        end(this.localEnding ?? ending);
      },
    });
    this.timer = setTimeout(() => this.give('no Welcome in time'), WELCOME_TIMEOUT_MS);
    this.say({ case: 'hello', value: hello });
  }

  get writable(): boolean {
    return this.link.writable;
  }

  nextFrameId(): number {
    return ++this.frameId;
  }

  send(frame: Uint8Array): void {
    this.link.send(frame);
  }

  /** A frame that waits for nothing. Returns its number. */
  say(frame: Frame): number {
    const frameId = this.nextFrameId();
    this.link.send(toBinary(WorkRequestSchema, create(WorkRequestSchema, { frameId: BigInt(frameId), frame })));
    return frameId;
  }

  /** Hands claims back, in as many frames as they need. An empty checkpoint keeps the one said last. */
  release(claims: readonly MessageInitShape<typeof ReleasedClaimSchema>[]): void {
    let items: Uint8Array[] = [];
    let bytes = 0;
    for (const claim of claims) {
      const item = toBinary(ReleasedClaimSchema, create(ReleasedClaimSchema, claim));
      if (bytes + sizeInFrame(item.length) > this.maxFrameBytes) {
        this.send(encodeFrame(releaseShape, this.nextFrameId(), items));
        items = [];
        bytes = 0;
      }
      items.push(item);
      bytes += sizeInFrame(item.length);
    }
    if (items.length > 0) this.send(encodeFrame(releaseShape, this.nextFrameId(), items));
  }

  halfClose(): void {
    this.link.halfClose();
  }

  /** Ends the stream from this side; `ended` resolves with this as its message. */
  give(why: string): void {
    this.localEnding ??= new ReeveError({ reason: 'UNAVAILABLE', code: status.UNAVAILABLE, message: why });
    this.link.abort();
  }

  private receive({ frameId, frame }: WorkResponse): void {
    this.heardAt = performance.now();
    switch (frame.case) {
      case 'welcome':
        this.welcome(frame.value);
        return;
      case 'heartbeat':
        this.renewed(frame.value);
        return;
      case undefined:
        this.refuse(frameId);
        return;
      default:
        this.listener.onWork(frame);
    }
  }

  private welcome(welcome: Welcome): void {
    clearTimeout(this.timer);
    const intervalMs = durationToMs(welcome.heartbeatInterval) ?? 10_000;
    const maxFrameBytes = welcome.limits?.maxFrameBytes ?? 0;
    if (maxFrameBytes > 0) this.maxFrameBytes = Math.min(MAX_FRAME_BYTES, maxFrameBytes);
    this.beatAt = this.lookedAt = performance.now();
    this.timer = setInterval(() => this.look(intervalMs), intervalMs / LOOKS_PER_INTERVAL);
    this.listener.onWelcome(welcome);
  }

  private look(intervalMs: number): void {
    const now = performance.now();
    const late = now - this.lookedAt > intervalMs / 2;
    this.lookedAt = now;
    // After a stall of this process what the server said is still in the socket: read it before judging.
    if (!late && now - this.heardAt > 2 * intervalMs) return this.give('the server has been silent for too long');
    // A timer may come a little early.
    if (now - this.beatAt > intervalMs - 1) this.beat(now);
  }

  private beat(now: number): void {
    this.beatAt = now;
    const frameId = this.say({ case: 'heartbeat', value: { held: this.listener.held() } });
    this.heartbeats.set(frameId, Date.now());
    if (this.heartbeats.size <= MAX_UNANSWERED_HEARTBEATS) return;
    for (const oldest of this.heartbeats.keys()) {
      this.heartbeats.delete(oldest);
      break;
    }
  }

  private renewed({ heartbeatFrameId }: ServerHeartbeat): void {
    const frameId = Number(heartbeatFrameId);
    const sentAtMs = this.heartbeats.get(frameId);
    if (sentAtMs === undefined) return;
    for (const earlier of this.heartbeats.keys()) if (earlier <= frameId) this.heartbeats.delete(earlier);
    this.listener.onRenewed(sentAtMs);
  }

  private refuse(frameId: bigint): void {
    const refusal = {
      reason: ErrorReason.UNSUPPORTED,
      grpcCode: status.UNIMPLEMENTED,
      message: 'this worker does not know this kind of frame',
    };
    this.say({ case: 'rejection', value: { frameId, refusal } });
    this.listener.onUnknownFrame(Number(frameId));
  }
}
