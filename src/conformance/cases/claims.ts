/**
 * How a worker does its work: the words, their order and their numbers.
 */
import { isDeepStrictEqual } from 'node:util';
import { demand, type ConformanceCase } from '../case.js';
import type { Kit } from '../kit.js';
import { KINDS, UNSERVED_KIND } from '../kit-contract.js';
import { claimOf, type OfferedClaim } from '../offered-claim.js';

function requireOrder(kit: Kit, claim: OfferedClaim, ending: string): void {
  const words = kit.ledger.said(claim).map((saying) => saying.case);
  const path = words.join(', ');
  demand(words[1] === 'started', `after accepted comes started, it said: ${path}`);
  demand(words.at(-1) === ending && kit.ledger.endings(claim).length === 1, `one ending and nothing after it: ${path}`);
}

export const claims: readonly ConformanceCase[] = [
  {
    id: 'one-claim',
    title: 'says accepted, started, completed with the result, numbered from 1, and nothing more',
    run: async (kit) => {
      const session = await kit.welcome();
      const args = { text: 'grün 🌱', list: [1, 2.5, null, true], deep: { er: { est: '' } } };
      const claim = claimOf(KINDS.echo, args);
      session.offer(claim);
      const { value } = await kit.completes(claim);
      const result: unknown = value.resultJson === '' ? undefined : JSON.parse(value.resultJson);
      demand(isDeepStrictEqual(result, args), `the result of ${KINDS.echo} is ${value.resultJson}, not its args`);
      await kit.silencedAfter(session, [claim], 'its ending was said and judged');
      requireOrder(kit, claim, 'completed');
    },
  },
  {
    id: 'many-claims',
    title: 'numbers the events of every claim by themselves, also of those that came in one frame',
    run: async (kit) => {
      const session = await kit.welcome();
      const offered = [120, 0, 60, 0, 180].map((ms) => claimOf(KINDS.sleep, { ms }));
      session.offer(...offered);
      for (const claim of offered) await kit.completes(claim);
      for (const claim of offered) requireOrder(kit, claim, 'completed');
    },
  },
  {
    id: 'progress',
    title: 'says progress between started and the ending, as a share from 0 to 1',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 300 });
      session.offer(claim);
      await kit.completes(claim);
      requireOrder(kit, claim, 'completed');
      const shares = kit.ledger.said(claim).flatMap((saying) => (saying.case === 'progress' ? [saying.value] : []));
      demand(shares.length > 0, `${KINDS.sleep} of 300 ms said no progress`);
      for (const { fraction } of shares) {
        demand(fraction === undefined || (fraction >= 0 && fraction <= 1), `a fraction of ${fraction}`);
      }
    },
  },
  {
    id: 'failure',
    title: "settles a failure with the handler's own code, message and retryable",
    run: async (kit) => {
      const session = await kit.welcome();
      for (const retryable of [false, true]) {
        const error = { code: 'no_paper', message: 'the printer is empty', retryable };
        const claim = claimOf(KINDS.fail, error);
        session.offer(claim);
        const ending = await kit.ends(claim);
        demand(ending.case === 'failed', `${KINDS.fail} ended with ${ending.case}`);
        const { code = '', message = '', retryable: said = true } = ending.value.error ?? {};
        demand(
          isDeepStrictEqual({ code, message, retryable: said }, error),
          `the error is ${code}, ${message}, ${said}`,
        );
      }
    },
  },
  {
    id: 'no-handler',
    title: 'fails a claim of a kind that it has no handler for, with a code, and runs nothing',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(UNSERVED_KIND, { ms: 1 });
      session.offer(claim);
      const ending = await kit.ends(claim);
      demand(ending.case === 'failed', `a claim of an unknown kind ended with ${ending.case}`);
      demand((ending.value.error?.code ?? '') !== '', 'the failure has no error code');
      await kit.worksStill(session);
    },
  },
  {
    id: 'offered-twice',
    title: 'runs a claim once that is offered twice with the same epoch',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 400 });
      session.offer(claim);
      await kit.saidAtLeast(claim, 4);
      session.offer(claim);
      await kit.completes(claim);
      await kit.worksStill(session);
      for (const word of ['accepted', 'started', 'completed'] as const) {
        demand(kit.ledger.count(claim, word) === 1, `${word} was said ${kit.ledger.count(claim, word)} times`);
      }
      const numbers = session.numbersOf(claim);
      // A second run would begin at 1 again, and its first words look like the first run's.
      demand(new Set(numbers).size === numbers.length, `numbers were said twice: ${numbers.join(', ')}`);
    },
  },
  {
    id: 'frame-size',
    title: 'splits what it says into frames of at most 1.5 MiB',
    run: async (kit) => {
      const session = await kit.welcome();
      const count = 6;
      const claim = claimOf(KINDS.output, { count, bytes: 700_000 });
      session.offer(claim);
      await kit.completes(claim);
      demand(kit.ledger.count(claim, 'output') === count, `${kit.ledger.count(claim, 'output')} of ${count} outputs`);
    },
  },
];
