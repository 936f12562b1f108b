/**
 * The claims this worker holds, and what the server says about them: claims, verdicts, cancels, losses, what is kept
 * after a re-attach. It must not forget a claim before its settlement is answered, nor let one speak after it is lost.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ReceiptKind } from '../../gen/reeve/v1/task_pb.js';
import type {
  CancelNotice,
  CancelReceiptSchema,
  Claim as ClaimMessage,
  HeldClaim as HeldOnWire,
  LeaseLoss,
  TaskVerdict,
} from '../../gen/reeve/v1/worker_service_pb.js';

import { fromRefusal, type ReeveError } from '../transport/reeve-error.js';
import { durationToMs } from '../transport/time.js';
import { HeldClaim, type Saying } from './held-claim.js';
import type { SettlementWord, Settled, Tell } from './notices.js';
import type { Outbox } from './outbox.js';
import { instead } from './settlement-saying.js';
import { CancelRequested, LeaseLost, type LeaseLossWord, lossWord } from './stop-reasons.js';

type Receipt = MessageInitShape<typeof CancelReceiptSchema>;

export interface BookListener {
  /** Runs its handler. */
  begin(held: HeldClaim): void;
  receipts(receipts: Receipt[]): void;
  /** Claims that came too late to be begun: a drain is under way. */
  handBack(held: readonly HeldClaim[]): void;
  /** Fewer or more claims are held, or run. */
  changed(): void;
  settled(settled: Settled): void;
}

/** Handlers begin in slices of so long, ms, so that those which compute do not hold up what is said meanwhile. */
const BEGIN_SLICE_MS = 5;
const RESEND_MS = 250;

export class ClaimBook {
  draining = false;
  private readonly claims = new Map<string, HeldClaim>();
  /** Handlers that still run though their claim is over. */
  private strays = 0;
  private runningCount = 0;
  private toBegin: HeldClaim[] = [];

  constructor(
    private readonly outbox: Outbox,
    private readonly tell: Tell,
    private readonly listener: BookListener,
  ) {}

  get size(): number {
    return this.claims.size;
  }

  /** Handlers that have not ended, those of lost claims included. */
  get running(): number {
    return this.runningCount;
  }

  get strayHandlers(): number {
    return this.strays;
  }

  get held(): IterableIterator<HeldClaim> {
    return this.claims.values();
  }

  take(messages: readonly ClaimMessage[]): void {
    const taken: HeldClaim[] = [];
    for (const message of messages) {
      const earlier = this.claims.get(message.taskId);
      if (earlier?.epoch === message.epoch) continue;
      if (earlier !== undefined) this.lose(earlier, 'superseded');
      const held = new HeldClaim(message, (observed) => this.acknowledge(observed));
      this.claims.set(held.taskId, held);
      taken.push(held);
    }
    if (this.draining) return this.listener.handBack(taken);
    for (const held of taken) this.outbox.say(held, ACCEPTED);
    this.toBegin.push(...taken);
    this.begin();
  }

  judge(verdicts: readonly TaskVerdict[]): void {
    for (const verdict of verdicts) {
      const held = this.claims.get(verdict.taskId);
      if (held === undefined || held.epoch !== verdict.epoch) continue;
      this.outbox.answered(held, Number(verdict.judgedThrough));
      let settlementRefusal: ReeveError | null = null;
      for (const { eventSeq, refusal } of verdict.rejected) {
        if (refusal === undefined) continue;
        const error = fromRefusal(refusal);
        const seq = Number(eventSeq);
        this.tell({ type: 'event_refused', taskId: held.taskId, epoch: Number(held.epoch), eventSeq: seq, error });
        if (error.reason === 'LEASE_LOST') this.lose(held, 'superseded');
        else if (seq > held.answeredThrough) this.sendAgain(held, error);
        else if (held.phase === 'settling' && seq === held.lastSeq) settlementRefusal = error;
        else held.refusal ??= error;
      }
      held.wakeCommitted();
      if (held.phase !== 'settling' || held.answeredThrough < held.lastSeq) continue;
      if (settlementRefusal === null) this.settle(held);
      else this.settleOtherwise(held, settlementRefusal);
    }
    this.listener.changed();
  }

  cancel(notices: readonly CancelNotice[]): void {
    // That they are delivered is said already: by the keeper of the stream, before they came here.
    const again: Receipt[] = [];
    const toStop: [HeldClaim, CancelRequested][] = [];
    for (const { taskId, epoch, cancellationToken, reason, grace } of notices) {
      const held = this.claims.get(taskId);
      if (held === undefined || held.epoch !== epoch) continue;
      held.cancellationToken = cancellationToken;
      if (held.acknowledged) again.push(receiptOf(held, ReceiptKind.ACKNOWLEDGED));
      toStop.push([held, new CancelRequested(reason?.code ?? '', reason?.summary ?? '', durationToMs(grace))]);
    }
    if (again.length > 0) this.listener.receipts(again);
    for (const [held, reason] of toStop) {
      this.tell({ type: 'cancel_requested', taskId: held.taskId, epoch: Number(held.epoch) });
      held.stop.stop(reason);
    }
  }

  /** Every receipt for the cancels of what is held. */
  receiptsOwed(): Receipt[] {
    const receipts: Receipt[] = [];
    for (const held of this.claims.values()) {
      if (held.cancellationToken === null) continue;
      receipts.push(receiptOf(held, ReceiptKind.DELIVERED));
      if (held.acknowledged) receipts.push(receiptOf(held, ReceiptKind.ACKNOWLEDGED));
    }
    return receipts;
  }

  loseAllOf(losses: readonly LeaseLoss[]): void {
    for (const { taskId, epoch, cause } of losses) {
      const held = this.claims.get(taskId);
      if (held?.epoch === epoch) this.lose(held, lossWord(cause));
    }
  }

  /** After a re-attach: what the server kept is sent what it has not judged; everything else is lost. */
  reconcile(kept: readonly HeldOnWire[], lost: readonly LeaseLoss[]): void {
    this.loseAllOf(lost);
    const marks = new Map(kept.map((claim) => [claim.taskId, claim]));
    for (const held of [...this.claims.values()]) {
      const mark = marks.get(held.taskId);
      if (mark?.epoch !== held.epoch) {
        this.lose(held, 'superseded');
        continue;
      }
      this.outbox.answered(held, Number(mark.answeredThrough));
      held.wakeCommitted();
      // Judged, and still ours: it was refused, and the verdict went down with the old stream. It will be again.
      if (held.phase === 'settling' && held.events.length === 0 && held.settlement !== null) {
        this.outbox.say(held, held.settlement);
      }
      this.outbox.sendAgain(held);
    }
  }

  /** Everything unanswered once more. */
  sayAgain(): void {
    for (const held of this.claims.values()) this.outbox.sendAgain(held);
  }

  /** The session is gone. */
  loseEverything(why: LeaseLossWord): number {
    const all = [...this.claims.values()];
    for (const held of all) this.lose(held, why);
    return all.length;
  }

  settling(held: HeldClaim, saying: Saying, as: SettlementWord): void {
    held.phase = 'settling';
    held.settlement = saying;
    held.settledAs = as;
    this.outbox.say(held, saying);
  }

  handlerBegan(held: HeldClaim): void {
    held.running = true;
    this.runningCount += 1;
  }

  handlerEnded(held: HeldClaim): void {
    held.running = false;
    this.runningCount -= 1;
    if (held.phase === 'over') this.strays -= 1;
    this.listener.changed();
  }

  private begin(): void {
    const begunAt = performance.now();
    for (let index = 0; index < this.toBegin.length; index += 1) {
      const held = this.toBegin[index];
      if (held === undefined || held.phase !== 'open') continue;
      this.listener.begin(held);
      if (performance.now() - begunAt < BEGIN_SLICE_MS) continue;
      this.toBegin.splice(0, index + 1);
      this.outbox.flush();
      if (this.toBegin.length > 0) setImmediate(() => this.begin());
      return;
    }
    this.toBegin = [];
  }

  private acknowledge(held: HeldClaim): void {
    if (held.acknowledged || held.cancellationToken === null || held.phase === 'over') return;
    held.acknowledged = true;
    this.listener.receipts([receiptOf(held, ReceiptKind.ACKNOWLEDGED)]);
  }

  private settle(held: HeldClaim): void {
    const { taskId, generation, kind, settledAs: as } = held;
    this.forget(held);
    if (as !== null) this.listener.settled({ taskId, generation, epoch: Number(held.epoch), kind, as });
  }

  private settleOtherwise(held: HeldClaim, refusal: ReeveError): void {
    const { settlement } = held;
    if (settlement === null) return;
    if (refusal.retryable || refusal.reason === 'CHILDREN_ACTIVE') {
      // Children end by themselves; until they have, the claim is held and asked again.
      const waitMs = held.backoff.next(refusal.retryAfterMs);
      setTimeout(() => held.phase === 'settling' && this.outbox.say(held, settlement), waitMs);
      return;
    }
    held.refusals += 1;
    const other = instead(settlement, refusal, held.refusals);
    if (other !== null) return this.settling(held, other, other.case === 'cancelled' ? 'cancelled' : 'failed');
    const { taskId, epoch } = held;
    this.tell({ type: 'settlement_abandoned', taskId, epoch: Number(epoch), error: refusal });
    this.forget(held);
  }

  private sendAgain(held: HeldClaim, error: ReeveError): void {
    if (error.reason === 'EVENT_GAP') return this.outbox.sendAgain(held);
    setTimeout(() => held.phase !== 'over' && this.outbox.sendAgain(held), error.retryAfterMs ?? RESEND_MS);
  }

  private lose(held: HeldClaim, why: LeaseLossWord): void {
    if (held.phase === 'over') return;
    this.tell({ type: 'lease_lost', taskId: held.taskId, epoch: Number(held.epoch), why });
    held.stop.stop(new LeaseLost(why));
    this.forget(held);
  }

  private forget(held: HeldClaim): void {
    this.outbox.drop(held);
    if (held.running) this.strays += 1;
    if (this.claims.get(held.taskId) === held) this.claims.delete(held.taskId);
    this.listener.changed();
  }
}

const ACCEPTED: Saying = { case: 'accepted', value: {} };

function receiptOf(held: HeldClaim, kind: ReceiptKind): Receipt {
  const { taskId, generation, epoch, cancellationToken } = held;
  return { taskId, generation, epoch, cancellationToken: cancellationToken ?? '', kind };
}
