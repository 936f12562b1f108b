/**
 * What a worker does when its stream breaks: it comes back as the same session, with what it holds, and says again
 * what nobody answered; or, when the session is gone, as a new one that has forgotten the old work.
 */
import { status } from '@grpc/grpc-js';
import { LeaseLossCause } from '../../gen/reeve/v1/worker_service_pb.js';
import { type ConformanceCase, demand } from '../case.js';
import type { Kit } from '../kit.js';
import { KINDS } from '../kit-contract.js';
import { ACCEPT_TIMEOUT_MS, type KitSession } from '../kit-session.js';
import { claimedAgain, claimOf, type OfferedClaim } from '../offered-claim.js';

const SLEEP_MS = 1_500;

async function startedSleep(kit: Kit, session: KitSession, ms = SLEEP_MS): Promise<OfferedClaim> {
  const claim = claimOf(KINDS.sleep, { ms });
  session.offer(claim);
  await kit.said(claim, 'progress');
  return claim;
}

/** Whether it is before the server takes it back. */
function isAccepted(kit: Kit, claim: OfferedClaim): Promise<boolean> {
  const accepted = kit.said(claim, 'accepted').then(() => true);
  return Promise.race([accepted, kit.signals.quiet(ACCEPT_TIMEOUT_MS).then(() => false)]);
}

export const reattach: readonly ConformanceCase[] = [
  {
    id: 'reattach',
    title: 'comes back after a broken stream as the same session and says again what was not answered',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: SLEEP_MS });
      session.withhold(claim);
      session.offer(claim);
      await kit.saidAtLeast(claim, 5);
      session.judge(claim, 2);
      await kit.worksStill(session);
      kit.server.cut();
      const { stream, hello } = await kit.reattachArrival(session);
      const held = hello.reattach?.held.find(({ taskId, epoch }) => taskId === claim.taskId && epoch === claim.epoch);
      demand(held !== undefined, 'the Hello does not name the claim among what is held');
      demand(held.answeredThrough === 2n, `answered_through is ${held.answeredThrough}, the verdict went through 2`);
      // The verdict on number 3 was lost with the stream.
      const again = kit.attach(stream, hello, session, [[claim, 3]]);
      await kit.completes(claim);
      const numbers = again.numbersOf(claim);
      demand(numbers.includes(4), `number 4 was not said again on the new stream (${numbers.join(', ')})`);
      const falls = numbers.findIndex((number, at) => at > 0 && number !== (numbers[at - 1] ?? 0) + 1);
      demand(falls === -1, `the events came out of order on the new stream: ${numbers.join(', ')}`);
      await kit.worksStill(again);
    },
  },
  {
    id: 'reattach-lost',
    title: 'goes on with what was kept after a re-attach and drops what was lost',
    run: async (kit) => {
      const session = await kit.welcome();
      const kept = await startedSleep(kit, session);
      const lost = await startedSleep(kit, session);
      const unnamed = await startedSleep(kit, session);
      kit.server.cut();
      const back = await kit.welcomeBack(session, [[kept, 0]], [lost]);
      await kit.silencedAfter(back, [lost, unnamed], 'the Welcome did not keep it');
      await kit.completes(kept);
      await kit.signals.quiet(300);
    },
  },
  {
    id: 'session-gone',
    title: 'begins a new session when the old one is gone, without a word about the old work',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = await startedSleep(kit, session);
      kit.server.cut();
      const { stream } = await kit.reattachArrival(session);
      kit.ledger.over(claim, 'its session is gone');
      stream.refuse(status.FAILED_PRECONDITION, 'SESSION_GONE');
      const fresh = await kit.welcome({}, 'a new session after SESSION_GONE');
      const again = claimedAgain(claim);
      fresh.offer(again);
      await kit.completes(again);
      await kit.worksStill(fresh);
    },
  },
  {
    id: 'deaf-handler',
    title:
      'runs no task beside itself that comes again while its old handler has not stopped: it waits, or is not accepted',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.deaf, { ms: SLEEP_MS });
      session.offer(claim);
      await kit.said(claim, 'started');
      kit.server.cut();
      const { stream } = await kit.reattachArrival(session);
      kit.ledger.over(claim, 'its session is gone');
      stream.refuse(status.FAILED_PRECONDITION, 'SESSION_GONE');
      const fresh = await kit.welcome({}, 'a new session after SESSION_GONE');
      let again = claimedAgain(claim);
      fresh.offer(again);
      await kit.worksStill(fresh);
      if (!(await isAccepted(kit, again))) {
        fresh.lose(again, LeaseLossCause.NOT_ACCEPTED);
        again = claimedAgain(again);
        fresh.offer(again);
      }
      const { value } = await kit.completes(again);
      const { beside } = JSON.parse(value.resultJson || '{}') as { beside?: unknown };
      demand(
        typeof beside === 'number',
        `the result of ${KINDS.deaf} is ${value.resultJson}, without the number beside`,
      );
      demand(beside === 0, 'it ran the task a second time while the first handler had not stopped');
    },
  },
  {
    id: 'outage',
    title: 'keeps trying while the server is away, without hammering at it, and comes back',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = await startedSleep(kit, session, 2_500);
      kit.server.turnAway();
      await kit.signals.quiet(OUTAGE_MS);
      const { turnedAway } = kit.server;
      kit.server.letIn();
      const back = await kit.welcomeBack(session, [[claim, 0]]);
      demand(turnedAway > 0, `it did not try to come back within ${OUTAGE_MS} ms`);
      demand(turnedAway <= MOST_TRIES, `it tried ${turnedAway} times within ${OUTAGE_MS} ms`);
      await kit.completes(claim);
      await kit.worksStill(back);
    },
  },
];

const OUTAGE_MS = 1_500;
/** One every 50 ms: far more than any back-off would make. */
const MOST_TRIES = 30;
