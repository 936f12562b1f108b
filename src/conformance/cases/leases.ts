/**
 * What a worker does when a claim is no longer its own: it stops the handler and says nothing more, whatever told it.
 */
import { ErrorReason } from '../../gen/reeve/v1/error_reason_pb.js';
import { LeaseLossCause } from '../../gen/reeve/v1/worker_service_pb.js';
import { type ConformanceCase } from '../case.js';
import type { Kit } from '../kit.js';
import { KINDS } from '../kit-contract.js';
import type { KitSession } from '../kit-session.js';
import { claimedAgain, claimOf, type OfferedClaim } from '../offered-claim.js';

const SLEEP_MS = 700;
const HEARTBEAT_MS = 500;
const CAUSE_OF_A_LATER_VERSION: number = 99;

/** The handler's whole time passes and a heartbeat with it; neither may tell of the claim. */
async function requireSilence(kit: Kit, session: KitSession, claim: OfferedClaim): Promise<void> {
  await kit.silencedAfter(session, [claim], 'its lease was lost and the worker told');
  await kit.signals.quiet(SLEEP_MS);
  // One that was on its way when the worker heard of it may still name the claim; now none may.
  const { mark } = session;
  const silent = ({ held }: { readonly held: readonly { taskId: string; epoch: bigint }[] }): boolean =>
    !held.some(({ taskId, epoch }) => taskId === claim.taskId && epoch === claim.epoch);
  await session.frame('heartbeat', 'a heartbeat that does not name the claim that was lost', silent, mark);
}

const terms = { ttlMs: 3 * HEARTBEAT_MS, heartbeatMs: HEARTBEAT_MS };

export const leases: readonly ConformanceCase[] = [
  {
    id: 'lease-lost',
    title: 'stops a handler whose lease is lost and says nothing more about it',
    run: async (kit) => {
      const session = await kit.welcome(terms);
      const claim = claimOf(KINDS.sleep, { ms: SLEEP_MS });
      session.offer(claim);
      await kit.said(claim, 'progress');
      session.lose(claim, LeaseLossCause.ATTEMPT_TIMED_OUT);
      await requireSilence(kit, session, claim);
    },
  },
  {
    id: 'lease-lost-verdict',
    title: 'takes the refusal LEASE_LOST of an event for the loss that it is',
    run: async (kit) => {
      const session = await kit.welcome(terms);
      const claim = claimOf(KINDS.sleep, { ms: SLEEP_MS });
      session.withhold(claim);
      session.offer(claim);
      await kit.said(claim, 'progress');
      session.judge(claim, 2, { seq: 3, why: ErrorReason.LEASE_LOST });
      await requireSilence(kit, session, claim);
    },
  },
  {
    id: 'higher-epoch',
    title: 'runs a task afresh, numbered from 1, that comes again under a higher epoch',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: SLEEP_MS });
      session.offer(claim);
      await kit.said(claim, 'progress');
      session.lose(claim, CAUSE_OF_A_LATER_VERSION);
      const again = claimedAgain(claim);
      session.offer(again);
      await kit.said(again, 'progress');
      kit.ledger.over(claim, 'a higher epoch was accepted');
      // This time the claim itself is the only word of the loss.
      const third = claimedAgain(again);
      session.offer(third);
      await kit.said(third, 'accepted');
      kit.ledger.over(again, 'a higher epoch was accepted');
      await kit.completes(third);
      await kit.worksStill(session);
    },
  },
];
