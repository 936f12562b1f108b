/**
 * Runs one handler on one claim, from `started` to its settlement. What the handler returns or throws becomes exactly
 * one settlement, or none where the authority settles: a lost lease, a passed deadline, a release.
 */
import type { ClaimBook } from './claim-book.js';
import { ClaimContext, unblock } from './claim-context.js';
import type { Handler } from './handler.js';
import type { HeldClaim, Saying } from './held-claim.js';
import type { SettlementWord, Tell } from './notices.js';
import type { Outbox } from './outbox.js';
import { completionOf, noHandler, sayingOfObedience, sayingOfThrow } from './settlement-saying.js';
import { obeys } from './stop-reasons.js';
import type { WorkTerms } from './work-terms.js';

export interface Stage {
  readonly book: ClaimBook;
  readonly outbox: Outbox;
  readonly terms: WorkTerms;
  readonly tell: Tell;
}

export function runClaim(held: HeldClaim, handler: Handler<never> | undefined, stage: Stage): void {
  const { book, outbox, terms, tell } = stage;
  if (handler === undefined) return settle(held, noHandler(held.kind), stage);
  const context = new ClaimContext(held, outbox, terms, () =>
    tell({ type: 'outputs_dropped', taskId: held.taskId, epoch: Number(held.epoch) }),
  );
  outbox.say(held, { case: 'started', value: {} });
  outbox.sayIfSilent();
  book.handlerBegan(held);
  const returned = (value: unknown) => {
    context.end();
    if (held.phase === 'open') settle(held, completionOf(value, terms.maxResultBytes), stage);
    book.handlerEnded(held);
  };
  const thrown = (error: unknown) => {
    context.end();
    if (held.phase === 'open') settleThrow(held, error, stage);
    book.handlerEnded(held);
  };
  let outcome: unknown;
  try {
    outcome = handler(held.claim, context);
  } catch (error) {
    return thrown(error);
  }
  if (outcome instanceof Promise) outcome.then(returned, thrown);
  else if (isAsyncGenerator(outcome)) drain(outcome, context).then(returned, thrown);
  else if (isThenable(outcome)) Promise.resolve(outcome).then(returned, thrown);
  else returned(outcome);
}

/** What is yielded is output; what is returned is the result. */
async function drain(generator: AsyncGenerator<unknown, unknown, undefined>, context: ClaimContext): Promise<unknown> {
  const { output } = context;
  for (;;) {
    const step = await generator.next();
    if (step.done === true) return step.value;
    await output(step.value);
  }
}

function settleThrow(held: HeldClaim, error: unknown, stage: Stage): void {
  const reason = held.stop.reason;
  if (!obeys(error, reason)) return settle(held, sayingOfThrow(error), stage);
  const saying = sayingOfObedience(reason);
  if (saying !== null) settle(held, saying, stage);
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

function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, undefined> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
