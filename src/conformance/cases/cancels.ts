/**
 * What a worker does when a task is to be cancelled: two receipts, an ending, and never a second one.
 */
import { type ConformanceCase, demand } from '../case.js';
import { KINDS } from '../kit-contract.js';
import { claimOf } from '../offered-claim.js';

const VERY_LONG_MS = 600_000;

export const cancels: readonly ConformanceCase[] = [
  {
    id: 'cancel',
    title: 'confirms a cancel as delivered and then as acknowledged, stops the handler and settles',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: VERY_LONG_MS });
      session.offer(claim);
      await kit.said(claim, 'progress');
      session.cancel(claim);
      await kit.receipts(session, claim);
      const ending = await kit.ends(claim);
      demand(ending.case === 'cancelled', `it ended with ${ending.case}, though the work was far from done`);
      await kit.silencedAfter(session, [claim], 'its ending was said and judged');
      await kit.signals.quiet(200);
    },
  },
  {
    id: 'cancel-after-ending',
    title: 'survives a cancel that crosses its ending, and does not settle a second time',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.echo, { done: true });
      session.withhold(claim);
      session.offer(claim);
      await kit.completes(claim);
      session.cancel(claim);
      await kit.worksStill(session);
      session.judge(claim, kit.ledger.said(claim).length);
      session.cancel(claim);
      await kit.worksStill(session);
      const endings = kit.ledger.endings(claim);
      demand(endings.length === 1, `it settled ${endings.length} times: ${endings.join(', ')}`);
    },
  },
  {
    id: 'cancel-again',
    title: 'confirms a cancel once more when it comes again after a re-attach',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: VERY_LONG_MS });
      session.withhold(claim);
      session.offer(claim);
      await kit.said(claim, 'progress');
      session.cancel(claim);
      await kit.receipts(session, claim);
      await kit.ends(claim);
      // What was said about it is lost with the stream, the server knows of nothing.
      kit.server.cut();
      const back = await kit.welcomeBack(session, [[claim, 0]]);
      back.cancel(claim);
      await kit.receipts(back, claim);
      await kit.worksStill(back);
      const numbers = back.numbersOf(claim);
      demand(numbers.includes(kit.ledger.said(claim).length), 'the ending was not said again on the new stream');
      demand(kit.ledger.endings(claim).length === 1, `it settled twice: ${kit.ledger.endings(claim).join(', ')}`);
    },
  },
];
