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
import type { Delays } from './delays.js';
import { HeldClaim, type Saying } from './held-claim.js';
import type { SettlementWord, Settled, Tell } from './notices.js';
import type { Outbox } from './outbox.js';
import { isForGood, unanswered } from './refused-events.js';
import { cancelledFor, eventsRefused, instead } from './settlement-saying.js';
import { CancelRequested, LeaseLost, type LeaseLossWord, lossReason, lossWord } from './stop-reasons.js';
import { Strays } from './strays.js';

type Receipt = MessageInitShape<typeof CancelReceiptSchema>;

export interface BookListener {
  /** Runs its handler. */
  begin(held: HeldClaim): void;
  receipts(receipts: Receipt[]): void;
  /** Tells the server that they are given back. */
  handBack(held: readonly HeldClaim[]): void;
  /** Fewer or more claims are held, or run. */
  changed(): void;
  settled(settled: Settled): void;
}

/** Handlers begin in slices of so long, ms, so that those which compute do not hold up what is said meanwhile. */
const BEGIN_SLICE_MS = 5;
/** While a drain waits for it, a settlement that was refused for now is asked for again at least so often, ms. */
const ASK_AGAIN_IN_DRAIN_MS = 1_000;
/** How often the same is said again that no hint calls passing. */
const MAX_VAIN_TIMES = 10;

/**
 * - `draining`: what comes is handed back, what runs may finish.
 * - `leaving`: nothing is waited for any more; what has no ending is handed back.
 */
type Going = 'no' | 'draining' | 'leaving';

export class ClaimBook {
  /** Claims handed back because their handlers, or their endings, took too long. */
  released = 0;
  private going: Going = 'no';
  private readonly claims = new Map<string, HeldClaim>();
  private readonly strays = new Strays();
  private runningCount = 0;
  private toBegin: HeldClaim[] = [];

  constructor(
    private readonly outbox: Outbox,
    private readonly delays: Pick<Delays, 'after'>,
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

  /** Those of claims that are over. */
  get strayHandlers(): number {
    return this.strays.count;
  }

  /** No handler runs but strays, and nothing that was said waits for its answer; settlements asked for again included. */
  get isQuiet(): boolean {
    if (this.runningCount > this.strays.count || !this.outbox.isEmpty) return false;
    for (const { phase } of this.claims.values()) if (phase === 'settling') return false;
    return true;
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
    if (this.going !== 'no') return this.handBack(taken);
    for (const held of taken) this.outbox.say(held, ACCEPTED);
    this.toBegin.push(...taken.filter((held) => !this.strays.holdUp(held)));
    this.begin();
  }

  /**
   * The server has renewed the session after it was told what is held: what this worker had stopped by itself, because
   * of a deadline, is still its own, so the deadline was moved. It is begun again, from its last checkpoint.
   */
  takeUpAgain(): void {
    if (this.going !== 'no') return;
    for (const held of this.claims.values()) if (held.isOutOfTime) this.toBegin.push(held.again());
    this.begin();
  }

  /** A drain has begun. */
  drain(): void {
    if (this.going === 'no') this.going = 'draining';
    for (const { asking } of [...this.claims.values()]) asking?.again.hasten();
  }

  /**
   * The drain's patience is over. What has no ending yet is handed back, to run elsewhere from its last checkpoint with
   * its attempt given back. So is what has a result that waits for live children: this process cannot wait for them,
   * and nobody else can settle in its name. The result is not handed on as a checkpoint: that is the handler's own
   * state, and the next attempt could not tell the one from the other.
   */
  leave(): void {
    this.going = 'leaving';
    const left: HeldClaim[] = [];
    for (const held of this.claims.values()) {
      if (held.phase === 'open') left.push(held);
      else if (held.asking?.refusal.reason === 'CHILDREN_ACTIVE') left.push(this.unsettled(held, held.asking.refusal));
    }
    this.release(left);
  }

  /** The worker is gone. What was handed back is not lost; what was settled and not answered may have been committed. */
  end(): void {
    for (const held of [...this.claims.values()]) {
      if (held.phase === 'settling') this.unsettled(held, held.asking?.refusal ?? unanswered);
      this.forget(held);
    }
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
        else if (seq > held.answeredThrough) this.refusedUnjudged(held, error);
        else if (held.phase === 'settling' && seq === held.lastSeq) settlementRefusal = error;
        else held.refusal ??= error;
      }
      held.wakeCommitted();
      if (held.phase !== 'settling' || held.asking !== null || held.answeredThrough < held.lastSeq) continue;
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
      held.cancelRequest = reason;
      if (held.phase === 'open' && !held.running) this.settling(held, cancelledFor(reason), 'cancelled');
      else held.stop.stop(reason);
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
      if (held.phase === 'settling' && held.events.length === 0) this.ask(held);
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

  /**
   * The server takes nothing more of what the claim says. Its task ends as failed, with what the server said; if that
   * is not taken either, the claim is given up, and the server takes it back when it is no longer named.
   */
  giveUp(held: HeldClaim, error: ReeveError): void {
    if (held.phase === 'over') return;
    this.outbox.retract(held, error);
    if (held.phase === 'releasing') return;
    held.stop.stop(new LeaseLost('refused'));
    if (held.givenUp) return this.abandon(held, error);
    held.givenUp = true;
    held.asking?.again.cancel();
    held.asking = null;
    if (held.answeredThrough < 1) this.outbox.say(held, ACCEPTED);
    if (held.answeredThrough < 2) this.outbox.say(held, STARTED);
    this.settling(held, eventsRefused(error), 'failed');
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
    const waiting = held.phase === 'over' ? this.strays.ended(held) : null;
    if (waiting !== null) {
      if (this.going !== 'no') this.handBack([waiting]);
      else {
        this.toBegin.push(waiting);
        this.begin();
      }
    }
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
    const awaitsChildren = refusal.reason === 'CHILDREN_ACTIVE';
    if (awaitsChildren && this.going === 'leaving') return this.release([this.unsettled(held, refusal)]);
    if (refusal.retryable || awaitsChildren) {
      // Children end by themselves; until they have, the claim is held and asked again.
      const waitMs = held.backoff.next(refusal.retryAfterMs);
      const inMs = this.going === 'no' ? waitMs : Math.min(waitMs, ASK_AGAIN_IN_DRAIN_MS);
      held.asking = { again: this.delays.after(inMs, () => this.ask(held)), refusal };
      return;
    }
    held.refusals += 1;
    const other = instead(settlement, refusal, held.refusals);
    if (other !== null) return this.settling(held, other, other.case === 'cancelled' ? 'cancelled' : 'failed');
    this.abandon(held, refusal);
  }

  /** For the same settlement once more. */
  private ask(held: HeldClaim): void {
    held.asking?.again.cancel();
    held.asking = null;
    if (held.phase === 'settling' && held.settlement !== null) this.outbox.say(held, held.settlement);
  }

  /** Nothing of what was said was judged; the mark stays where it was. */
  private refusedUnjudged(held: HeldClaim, error: ReeveError): void {
    if (held.resting) return;
    held.vainTimes += 1;
    if (isForGood(error) || (!error.retryable && held.vainTimes > MAX_VAIN_TIMES)) return this.giveUp(held, error);
    this.outbox.rest(held);
    this.delays.after(held.repeat.next(error.retryAfterMs), () => held.resting && this.outbox.sendAgain(held));
  }

  private unsettled(held: HeldClaim, error: ReeveError): HeldClaim {
    this.tell({ type: 'settlement_abandoned', taskId: held.taskId, epoch: Number(held.epoch), error });
    return held;
  }

  private abandon(held: HeldClaim, error: ReeveError): void {
    this.forget(this.unsettled(held, error));
  }

  private release(left: readonly HeldClaim[]): void {
    this.released += left.length;
    this.handBack(left);
  }

  private handBack(given: readonly HeldClaim[]): void {
    for (const held of given) {
      held.phase = 'releasing';
      held.asking?.again.cancel();
      held.asking = null;
    }
    if (given.length > 0) this.listener.handBack(given);
  }

  private lose(held: HeldClaim, why: LeaseLossWord): void {
    if (held.phase === 'over') return;
    // What was handed back is not lost, whatever the server calls it.
    if (held.phase !== 'releasing') {
      this.tell({ type: 'lease_lost', taskId: held.taskId, epoch: Number(held.epoch), why });
    }
    held.stop.stop(lossReason(why, held.claim.deadline));
    this.forget(held);
  }

  private forget(held: HeldClaim): void {
    this.outbox.drop(held);
    if (held.running) this.strays.add(held);
    if (this.claims.get(held.taskId) === held) this.claims.delete(held.taskId);
    this.listener.changed();
  }
}

const ACCEPTED: Saying = { case: 'accepted', value: {} };
const STARTED: Saying = { case: 'started', value: {} };

function receiptOf(held: HeldClaim, kind: ReceiptKind): Receipt {
  const { taskId, generation, epoch, cancellationToken } = held;
  return { taskId, generation, epoch, cancellationToken: cancellationToken ?? '', kind };
}
