/**
 * One stream from Hello to its end, as messages: what the worker says becomes frames, what comes becomes Welcome and
 * work. What frames mean is the listener's; keeping the stream alive is the link's.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  type Hello,
  type HelloSchema,
  ReleasedClaimSchema,
  ReleaseSchema,
  type Welcome,
  WorkRequestSchema,
  type WorkResponse,
  WorkResponseSchema,
} from '../../../gen/reeve/v1/worker_service_pb.js';
import { encodeFrame, type FrameShape, MAX_FRAME_BYTES, sizeInFrame } from '../../transport/frame-bytes.js';
import type { ReeveError } from '../../transport/reeve-error.js';
import type { EventSink } from '../outbox.js';
import type { FrameKind } from './frame-glance.js';
import type { Link, Links } from './link.js';

type Frame = Exclude<MessageInitShape<typeof WorkRequestSchema>['frame'], undefined>;
export type HelloInit = Exclude<MessageInitShape<typeof HelloSchema>, Hello>;
/** What the server says about the work itself. */
export type WorkFrame = Exclude<WorkResponse['frame'], { case: 'welcome' | 'heartbeat' | undefined }>;

export interface AttachmentListener {
  onWelcome(welcome: Welcome): void;
  /** @param about for a rejection: what kind of frame was rejected, where that is still known. */
  onWork(frame: WorkFrame, about: FrameKind | null): void;
  /** The session lives one TTL from `sentAtMs` (epoch ms) on. */
  onRenewed(sentAtMs: number): void;
  onUnknownFrame(frameId: number): void;
  onDrain(): void;
  /** Before `ended` resolves. */
  onEnd(ending: ReeveError): void;
}

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

  constructor(
    links: Links,
    hello: HelloInit & { readonly slots: number },
    private readonly listener: AttachmentListener,
  ) {
    let end: (ending: ReeveError) => void = () => undefined;
    this.ended = new Promise((resolve) => (end = resolve));
    this.link = links.open(encode({ case: 'hello', value: hello }), hello.slots, {
      onFrame: (bytes, about) => this.receive(bytes, about),
      onRenewed: (sentAtMs) => listener.onRenewed(sentAtMs),
      onUnknownFrame: (frameId) => listener.onUnknownFrame(frameId),
      onWritable: () => listener.onDrain(),
      onEnd: (ending) => {
        listener.onEnd(ending);
        end(ending);
      },
    });
  }

  get writable(): boolean {
    return this.link.writable;
  }

  get sendIfSilent(): ((frame: Uint8Array) => void) | null {
    return this.link.sendIfSilent;
  }

  send(frame: Uint8Array): void {
    this.link.send(frame);
  }

  /** A frame that waits for nothing. */
  say(frame: Frame): void {
    this.link.send(encode(frame));
  }

  setSlots(slots: number): void {
    this.link.setSlots(slots);
  }

  /** Hands claims back, in as many frames as they need. An empty checkpoint keeps the one said last. */
  release(claims: readonly MessageInitShape<typeof ReleasedClaimSchema>[]): void {
    let items: Uint8Array[] = [];
    let bytes = 0;
    for (const claim of claims) {
      const item = toBinary(ReleasedClaimSchema, create(ReleasedClaimSchema, claim));
      if (bytes + sizeInFrame(item.length) > this.maxFrameBytes) {
        this.send(encodeFrame(releaseShape, null, items));
        items = [];
        bytes = 0;
      }
      items.push(item);
      bytes += sizeInFrame(item.length);
    }
    if (items.length > 0) this.send(encodeFrame(releaseShape, null, items));
  }

  halfClose(): void {
    this.link.halfClose();
  }

  /** Ends the stream from this side; `ended` resolves with this as its message. */
  give(why: string): void {
    this.link.give(why);
  }

  private receive(bytes: Uint8Array, about: FrameKind | null): void {
    const frame = this.decode(bytes);
    if (frame?.case === undefined || frame.case === 'heartbeat') return;
    if (frame.case !== 'welcome') return this.listener.onWork(frame, about);
    const maxFrameBytes = frame.value.limits?.maxFrameBytes ?? 0;
    if (maxFrameBytes > 0) this.maxFrameBytes = Math.min(MAX_FRAME_BYTES, maxFrameBytes);
    this.listener.onWelcome(frame.value);
  }

  private decode(bytes: Uint8Array): WorkResponse['frame'] | undefined {
    try {
      return fromBinary(WorkResponseSchema, bytes).frame;
    } catch (error) {
      this.give(`the server sent what is no frame: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }
}

/** Without a frame id: that is the keeper's to give. */
function encode(frame: Frame): Uint8Array {
  return toBinary(WorkRequestSchema, create(WorkRequestSchema, { frame }));
}
