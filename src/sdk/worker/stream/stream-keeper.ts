/**
 * Keeps one Work stream alive from Hello to its end: the frames' numbers, heartbeats, the watch over the server's
 * silence, `delivered` for cancels, and no more claims while the loop that does the work is silent. It must not renew
 * for a loop that has been silent beyond its limit: a wedged handler would hold its task for ever.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ClientDuplexStream, status } from '@grpc/grpc-js';
import { ErrorReason } from '../../../gen/reeve/v1/error_reason_pb.js';
import { ReceiptKind } from '../../../gen/reeve/v1/task_pb.js';
import {
  WorkRequestSchema,
  type WorkResponse,
  WorkResponseSchema,
  WorkerService,
} from '../../../gen/reeve/v1/worker_service_pb.js';
import { withFrameId } from '../../transport/frame-bytes.js';
import { fromStatus, ReeveError } from '../../transport/reeve-error.js';
import type { RpcConnection } from '../../transport/rpc.js';
import { durationToMs } from '../../transport/time.js';
import { type FrameKind, serverFrameKind, workerFrameKind } from './frame-glance.js';
import type { LinkListener } from './link.js';
import type { WorkLoop } from './work-loop.js';

type FrameInit = Exclude<MessageInitShape<typeof WorkRequestSchema>['frame'], undefined>;
type Incoming<Case> = Extract<WorkResponse['frame'], { case: Case }>['value'];

/** For Hello to be answered, ms. */
const WELCOME_TIMEOUT_MS = 15_000;
/** Silence is noticed soon after its limit, and not at the next heartbeat: by then the session has expired. */
const LOOKS_PER_INTERVAL = 4;
/** Heartbeats whose answers are awaited; older ones no longer matter. */
const MAX_UNANSWERED_HEARTBEATS = 16;
/** Frames whose kind is remembered for their rejection, the latest. */
const MAX_KINDS_KEPT = 1_024;
/** A loop silent for longer attracts no claims: it could not accept them, and each would wait in vain. */
export const ATTRACTS_CLAIMS_FOR_MS = 1_000;
/** Longer than a turn of a loop that computes nothing, ms, and far shorter than a claim may go unaccepted. */
const SAYS_NOTHING_AFTER_MS = 100;
const FRAME_ID_FIELD = WorkRequestSchema.field.frameId.number;

export class StreamKeeper {
  private readonly stream: ClientDuplexStream<Uint8Array, Uint8Array>;
  private writableNow = true;
  private frameId = 0;
  /** What was sent lately, by frame id: a rejection names nothing else. */
  private readonly kinds = new Map<number, FrameKind>();
  private timer: NodeJS.Timeout;
  private readonly heartbeats = new Map<number, number>();
  private heardAt = performance.now();
  private beatAt = performance.now();
  private lookedAt = performance.now();
  private ifSilent: Uint8Array | null = null;
  private slotsSaid: number;
  private welcomed = false;
  private saidEverything = false;
  private localEnding: ReeveError | null = null;

  /** @param wedgedAfterMs beyond so much silence nothing is renewed; 0: however long it is. */
  constructor(
    rpc: RpcConnection,
    hello: Uint8Array,
    private slots: number,
    private readonly wedgedAfterMs: number,
    private readonly loop: WorkLoop,
    private readonly listener: LinkListener,
  ) {
    this.slotsSaid = slots;
    this.stream = rpc.bidiBytes(WorkerService.method.work);
    this.stream.on('data', (frame: Uint8Array) => {
      const passes = this.receive(frame);
      if (passes !== null) listener.onFrame(frame, passes.about);
    });
    this.stream.on('drain', () => {
      this.writableNow = true;
      listener.onWritable();
    });
    // The status carries the same and always comes.
    this.stream.on('error', () => undefined);
    this.stream.on('status', ({ code, details, metadata }) => {
      clearTimeout(this.timer);
      rpc.close();
      listener.onEnd(this.localEnding ?? fromStatus(code, details, metadata));
    });
    this.timer = setTimeout(() => this.give('no Welcome in time'), WELCOME_TIMEOUT_MS);
    this.send(hello);
  }

  get writable(): boolean {
    return this.writableNow;
  }

  send(frame: Uint8Array): void {
    if (this.saidEverything) return;
    const kind = workerFrameKind(frame);
    if (kind === 'events') this.ifSilent = null;
    this.frameId += 1;
    if (kind !== null && kind !== 'hello') this.remember(kind);
    this.writableNow = this.stream.write(withFrameId(FRAME_ID_FIELD, this.frameId, frame));
  }

  sendIfSilent(frame: Uint8Array): void {
    this.ifSilent = frame;
  }

  setSlots(slots: number): void {
    this.slots = slots;
    this.saySlots();
  }

  /** From time to time, where the loop that does the work may fall silent. */
  look(): void {
    if (this.ifSilent !== null && this.loop.silentMs > SAYS_NOTHING_AFTER_MS) this.send(this.ifSilent);
    this.saySlots();
  }

  halfClose(): void {
    this.saidEverything = true;
    this.stream.end();
  }

  give(why: string): void {
    this.localEnding ??= new ReeveError({ reason: 'UNAVAILABLE', code: status.UNAVAILABLE, message: why });
    this.stream.cancel();
  }

  private say(frame: FrameInit): void {
    this.send(toBinary(WorkRequestSchema, create(WorkRequestSchema, { frame })));
  }

  private remember(kind: FrameKind): void {
    this.kinds.set(this.frameId, kind);
    if (this.kinds.size > MAX_KINDS_KEPT) this.kinds.delete(this.frameId - MAX_KINDS_KEPT);
  }

  private saySlots(): void {
    if (!this.welcomed) return;
    const slots = this.loop.silentMs > ATTRACTS_CLAIMS_FOR_MS ? 0 : this.slots;
    if (slots === this.slotsSaid) return;
    this.slotsSaid = slots;
    this.say({ case: 'slots', value: { slots } });
  }

  /** What is the keeper's own; what is not is passed on. */
  private receive(frame: Uint8Array): { readonly about: FrameKind | null } | null {
    this.heardAt = performance.now();
    try {
      return this.act(frame);
    } catch (error) {
      this.give(`the server sent what is no frame: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  }

  private act(frame: Uint8Array): { readonly about: FrameKind | null } | null {
    switch (serverFrameKind(frame)) {
      case 'welcome':
        this.welcome(read(frame, 'welcome'));
        break;
      case 'heartbeat':
        this.renewed(read(frame, 'heartbeat'));
        return null;
      case 'claims':
        this.loop.passed(frame);
        break;
      case 'cancels':
        this.confirm(read(frame, 'cancels'));
        break;
      case 'rejection':
        return { about: this.kinds.get(Number(read(frame, 'rejection').frameId)) ?? null };
      case null:
        this.refuse(frame);
        return null;
      default:
        break;
    }
    return { about: null };
  }

  private welcome({ heartbeatInterval }: Incoming<'welcome'>): void {
    clearTimeout(this.timer);
    const intervalMs = durationToMs(heartbeatInterval) ?? 10_000;
    this.welcomed = true;
    this.beatAt = this.lookedAt = performance.now();
    this.timer = setInterval(() => this.lookAt(intervalMs), intervalMs / LOOKS_PER_INTERVAL);
    this.saySlots();
  }

  private lookAt(intervalMs: number): void {
    const now = performance.now();
    const late = now - this.lookedAt > intervalMs / 2;
    this.lookedAt = now;
    if (this.wedgedAfterMs > 0 && this.loop.silentMs > this.wedgedAfterMs) {
      // Not asked, the server owes no answer.
      this.heardAt = now;
      return;
    }
    // After a stall of this process what the server said is still in the socket: read it before judging.
    if (!late && now - this.heardAt > 2 * intervalMs) return this.give('the server has been silent for too long');
    // A timer may come a little early.
    if (now - this.beatAt > intervalMs - 1) this.beat(now);
  }

  private beat(now: number): void {
    this.beatAt = now;
    this.say({ case: 'heartbeat', value: { held: [...this.loop.held()] } });
    this.heartbeats.set(this.frameId, Date.now());
    if (this.heartbeats.size <= MAX_UNANSWERED_HEARTBEATS) return;
    for (const oldest of this.heartbeats.keys()) {
      this.heartbeats.delete(oldest);
      break;
    }
  }

  private renewed({ heartbeatFrameId }: Incoming<'heartbeat'>): void {
    const frameId = Number(heartbeatFrameId);
    const sentAtMs = this.heartbeats.get(frameId);
    if (sentAtMs === undefined) return;
    for (const earlier of this.heartbeats.keys()) if (earlier <= frameId) this.heartbeats.delete(earlier);
    this.listener.onRenewed(sentAtMs);
  }

  /** The client has the frame, whatever the handler is doing. */
  private confirm({ cancels }: Incoming<'cancels'>): void {
    const receipts = cancels.map(({ taskId, generation, epoch, cancellationToken }) => ({
      taskId,
      generation,
      epoch,
      cancellationToken,
      kind: ReceiptKind.DELIVERED,
    }));
    this.say({ case: 'cancelReceipts', value: { receipts } });
  }

  private refuse(frame: Uint8Array): void {
    const { frameId } = fromBinary(WorkResponseSchema, frame);
    const refusal = {
      reason: ErrorReason.UNSUPPORTED,
      grpcCode: status.UNIMPLEMENTED,
      message: 'this worker does not know this kind of frame',
    };
    this.say({ case: 'rejection', value: { frameId, refusal } });
    this.listener.onUnknownFrame(Number(frameId));
  }
}

/** The content of a frame whose kind is known. */
function read<Case extends Exclude<WorkResponse['frame']['case'], undefined>>(
  bytes: Uint8Array,
  kind: Case,
): Incoming<Case> {
  const { frame } = fromBinary(WorkResponseSchema, bytes);
  if (frame.case !== kind) throw new Error(`a frame that was told as ${kind} is ${frame.case}`);
  // The case says which; the compiler does not narrow a generic one.
  return frame.value as Incoming<Case>;
}
