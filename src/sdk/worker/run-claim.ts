/**
 * Runs one handler on one claim, from `started` to its settlement. What the handler returns or throws becomes exactly
 * one settlement, or none where the authority settles (a lost lease, a release) or the handler is begun again later.
 */
import type { ClaimBook } from './claim-book.js';
import { ClaimContext, unblock } from './claim-context.js';
import type { Delays } from './delays.js';
import type { Handler } from './handler.js';
import type { HeldClaim, Saying } from './held-claim.js';
import type { SettlementWord, Tell } from './notices.js';
import type { Outbox } from './outbox.js';
import {
  cancelledFor,
  completionOf,
  isMeantToRetry,
  noHandler,
  sayingOfThrow,
  unsayable,
} from './settlement-saying.js';
import { CancelRequested, obeys } from './stop-reasons.js';
import type { WorkTerms } from './work-terms.js';

export interface Stage {
  readonly book: ClaimBook;
  readonly outbox: Outbox;
  readonly terms: WorkTerms;
  readonly delays: Delays;
  readonly tell: Tell;
}

export function runClaim(held: HeldClaim, handler: Handler<never> | undefined, stage: Stage): void {
  const { book, tell } = stage;
  if (handler === undefined) return settle(held, noHandler(held.kind), stage);
  const context = new ClaimContext(held, stage, () =>
    tell({ type: 'outputs_dropped', taskId: held.taskId, epoch: Number(held.epoch) }),
  );
  if (!held.started) stage.outbox.say(held, { case: 'started', value: {} });
  held.started = true;
  stage.outbox.sayIfSilent();
  book.handlerBegan(held);
  const end = (say: () => void, retryable: boolean): void => {
    context.end();
    try {
      if (held.phase === 'open') say();
    } catch (error) {
      // A handler must not take its worker down with it, nor leave its task running for as long as that lives.
      settle(held, unsayable(error, retryable), stage);
    } finally {
      book.handlerEnded(held);
    }
  };
  const returned = (value: unknown): void =>
    end(() => settle(held, completionOf(value, stage.terms.maxResultBytes), stage), false);
  const thrown = (error: unknown): void => end(() => settleThrow(held, error, stage), isMeantToRetry(error));
  let outcome: unknown;
  let later: Promise<unknown> | null;
  try {
    outcome = handler(held.claim, context);
    later = laterOf(outcome, context);
  } catch (error) {
    return thrown(error);
  }
  if (later === null) returned(outcome);
  else later.then(returned, thrown);
}

/** The end of what goes on after the call; null when the handler has returned its result. May throw what a getter does. */
function laterOf(outcome: unknown, context: ClaimContext): Promise<unknown> | null {
  if (outcome instanceof Promise) return outcome;
  if (isAsyncIterable(outcome)) return drain(outcome[Symbol.asyncIterator](), context);
  if (isIterator(outcome)) return drain(outcome, context);
  return isThenable(outcome) ? Promise.resolve(outcome) : null;
}

/** What is yielded is output; what is returned is the result. Whatever ends it early lets it clean up. */
async function drain(
  iterator: AsyncIterator<unknown, unknown, undefined> | Iterator<unknown, unknown, undefined>,
  context: ClaimContext,
): Promise<unknown> {
  const { output } = context;
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return step.value;
    try {
      await output(await step.value);
    } catch (error) {
      await iterator.return?.();
      throw error;
    }
  }
}

function settleThrow(held: HeldClaim, error: unknown, stage: Stage): void {
  const reason = held.stop.reason;
  if (!obeys(error, reason)) return settle(held, sayingOfThrow(error), stage);
  // Where it stopped for another reason the authority settles, or the claim goes on later.
  const request = held.cancelRequest ?? reason;
  if (request instanceof CancelRequested) settle(held, cancelledFor(request), stage);
}

function settle(held: HeldClaim, saying: Saying, { book, outbox }: Stage): void {
  if (saying.case === 'completed') unblock(held, outbox);
  book.settling(held, saying, settlementWord(saying));
}

function settlementWord(saying: Saying): SettlementWord {
  switch (saying.case) {
    case 'completed':
    case 'cancelled':
    case 'suspended':
      return saying.case;
    case 'timedOut':
      return 'timed_out';
    default:
      return 'failed';
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown, unknown, undefined> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** A generator, or what goes on like one. Not what can be gone through anew: an array is a result. */
function isIterator(value: unknown): value is Iterator<unknown, unknown, undefined> {
  if (typeof value !== 'object' || value === null || !(Symbol.iterator in value)) return false;
  return 'next' in value && typeof value.next === 'function';
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
