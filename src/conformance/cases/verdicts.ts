/**
 * What a worker does when its words are refused: a refused event is no disaster, a refused ending leaves the claim
 * with it, and what was not judged is said again.
 */
import { ErrorReason } from '../../gen/reeve/v1/error_reason_pb.js';
import { type ConformanceCase, demand } from '../case.js';
import { KINDS } from '../kit-contract.js';
import { refusalOf } from '../kit-session.js';
import { claimOf } from '../offered-claim.js';

const REFUSALS = 7;
/** Pauses of 10 ms that double come to twice as much. */
const LEAST_PAUSES_MS = 600;

export const verdicts: readonly ConformanceCase[] = [
  {
    id: 'event-refused',
    title: 'goes on after an event was refused, whose number is used up',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 500 });
      session.withhold(claim);
      session.offer(claim);
      await kit.saidAtLeast(claim, 3);
      session.judge(claim, 3, { seq: 3, why: ErrorReason.ILLEGAL_EVENT });
      await kit.ends(claim);
      session.judge(claim, kit.ledger.said(claim).length);
      await kit.worksStill(session);
      demand(kit.ledger.endings(claim).length === 1, `it settled with ${kit.ledger.endings(claim).join(', ')}`);
    },
  },
  {
    id: 'ending-refused',
    title: 'ends a claim in another way when its ending is refused',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.echo, {});
      session.withhold(claim);
      session.offer(claim);
      await kit.completes(claim);
      const through = kit.ledger.said(claim).length;
      session.judge(claim, through, { seq: through, why: ErrorReason.ILLEGAL_EVENT });
      const find = () => kit.ledger.endings(claim)[1];
      await kit.signals.until(find, 'another ending after the first was refused');
      session.judge(claim, kit.ledger.said(claim).length);
      await kit.worksStill(session);
    },
  },
  {
    id: 'event-gap',
    title: 'says again, under the same numbers, what the server has not got',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 600 });
      session.withhold(claim);
      session.offer(claim);
      await kit.saidAtLeast(claim, 4);
      const before = session.numbersOf(claim).length;
      session.judge(claim, 1, { seq: 3, why: ErrorReason.EVENT_GAP });
      const find = () => session.numbersOf(claim).slice(before).includes(2) || undefined;
      await kit.signals.until(find, 'number 2 once more, after a gap before number 3');
      session.judgeFreely(claim);
      await kit.completes(claim);
    },
  },
  {
    id: 'event-gap-again',
    title: 'says it again after growing pauses when the server still has not got it',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 600 });
      session.withhold(claim);
      session.offer(claim);
      const times = () => session.numbersOf(claim).filter((number) => number === 2).length;
      const saidTimes = (count: number) =>
        kit.signals.until(
          () => times() >= count || undefined,
          `number 2 for the ${count}. time, after a gap before it`,
        );
      await saidTimes(1);
      const firstAt = performance.now();
      for (let count = 1; count <= REFUSALS; count += 1) {
        session.judge(claim, 1, { seq: 2, why: ErrorReason.EVENT_GAP });
        await saidTimes(count + 1);
      }
      const tookMs = Math.round(performance.now() - firstAt);
      demand(tookMs >= LEAST_PAUSES_MS, `it said the same ${REFUSALS} times more within ${tookMs} ms`);
    },
  },
  {
    id: 'frame-refused',
    title: 'says a frame again that was refused for a passing reason',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 600 });
      session.withhold(claim);
      session.offer(claim);
      await kit.saidAtLeast(claim, 3);
      const before = session.numbersOf(claim).length;
      const frameId = session.stream.lastFrameOf('events');
      session.stream.send({ case: 'rejection', value: { frameId, refusal: refusalOf(ErrorReason.STORE_UNAVAILABLE) } });
      const find = () => session.numbersOf(claim).slice(before).includes(1) || undefined;
      await kit.signals.until(find, 'the events of a frame that was refused with STORE_UNAVAILABLE once more');
      session.judgeFreely(claim);
      await kit.completes(claim);
    },
  },
];
