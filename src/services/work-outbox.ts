/**
 * What waits to be sent on a work stream. Control frames go out at once; claims and verdicts wait here while the
 * transport is behind, so that a control frame is never queued behind them. The one exception is a control frame
 * about a claim that still waits: it follows that claim, because a worker could do nothing with it before.
 */
import type { WorkResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { DeliveredClaim } from '../kernel/delivery.js';
import { claimWeight, claimsFrame, splitClaims } from '../wire/claim-frame.js';
import type { FrameContent } from '../wire/control-frames.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import { type VerdictToSend, verdictWeight, verdictsFrame } from '../wire/verdict-frame.js';
import type { StreamCall } from './call.js';

/** Handed to the transport ahead of what it has taken; the rest waits here, where control frames can pass it. */
const MAX_PENDING_BYTES = 262_144;
/** Claims beyond this are not taken: they go back to the queue. */
export const MAX_WAITING_BYTES = 4 * 1_048_576;

/** Beyond this a worker that speaks and does not listen is not listened to. */
const MAX_UNREAD_BYTES = 1_048_576;

interface Waiting {
  readonly weightBytes: number;
  /** The tasks whose claims it carries. */
  readonly claimed: ReadonlySet<string> | null;
  readonly send: () => void;
}

export class WorkOutbox {
  private readonly waiting: Waiting[] = [];
  private waitingBytes = 0;
  private verdicts: VerdictToSend[] = [];
  private verdictBytes = 0;
  private lastFrameId = 0;
  private open = false;

  constructor(private readonly call: StreamCall<typeof WorkResponseSchema>) {}

  /** Nothing leaves before the first frame, Welcome, has. */
  start(welcome: FrameContent): void {
    this.control(welcome);
    this.open = true;
    this.flush();
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.verdicts.length === 0;
  }

  /** The worker does not read: nothing more is to be read from it. */
  get isBehind(): boolean {
    return this.call.pendingBytes + this.waitingBytes + this.verdictBytes > MAX_UNREAD_BYTES;
  }

  /** False when the stream is too far behind; then none of them was taken. */
  addClaims(claims: readonly DeliveredClaim[]): boolean {
    if (this.call.pendingBytes + this.waitingBytes > MAX_WAITING_BYTES) return false;
    for (const list of splitClaims(claims)) {
      const weightBytes = list.reduce((sum, claim) => sum + claimWeight(claim), 0);
      const claimed = new Set(list.map((claim) => claim.record.admission.taskId));
      this.wait({ weightBytes, claimed, send: () => this.call.sendEncoded(claimsFrame(this.nextId(), list)) });
    }
    this.flush();
    return true;
  }

  /** Sent with the next flush; the verdicts of one commit leave as one frame. */
  addVerdict(verdict: VerdictToSend): void {
    this.verdicts.push(verdict);
    this.verdictBytes += verdictWeight(verdict);
    if (this.verdictBytes > MAX_FRAME_BYTES - 16_384) this.gatherVerdicts();
  }

  /** Overtakes whatever waits, unless a claim of these tasks does. */
  addControl(content: FrameContent, taskIds: readonly string[] = []): void {
    const behind = !this.open || this.waiting.some(({ claimed }) => taskIds.some((taskId) => claimed?.has(taskId)));
    if (behind) this.wait({ weightBytes: 0, claimed: null, send: () => this.control(content) });
    else this.control(content);
  }

  flush(): void {
    if (!this.open) return;
    this.gatherVerdicts();
    while (this.waiting.length > 0 && this.call.pendingBytes <= MAX_PENDING_BYTES) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.waitingBytes -= next.weightBytes;
      next.send();
    }
  }

  private gatherVerdicts(): void {
    if (this.verdicts.length === 0) return;
    const { verdicts, verdictBytes } = this;
    this.verdicts = [];
    this.verdictBytes = 0;
    const send = (): void => this.call.sendEncoded(verdictsFrame(this.nextId(), verdicts));
    this.wait({ weightBytes: verdictBytes, claimed: null, send });
  }

  private wait(item: Waiting): void {
    this.waiting.push(item);
    this.waitingBytes += item.weightBytes;
  }

  private control(frame: FrameContent): void {
    this.call.send({ frameId: BigInt(this.nextId()), frame });
  }

  private nextId(): number {
    this.lastFrameId += 1;
    return this.lastFrameId;
  }
}
