/**
 * How a worker leaves on SIGTERM: it says so, finishes or hands back what it holds, and ends with exit code 0.
 */
import { ErrorReason } from '../../gen/reeve/v1/error_reason_pb.js';
import { LeaseLossCause } from '../../gen/reeve/v1/worker_service_pb.js';
import { type ConformanceCase, demand } from '../case.js';
import type { Kit } from '../kit.js';
import { KINDS, LEAVING_LIMIT_MS } from '../kit-contract.js';
import type { KitSession } from '../kit-session.js';
import { claimOf, type OfferedClaim } from '../offered-claim.js';

function isReleased(session: KitSession, claim: OfferedClaim): boolean {
  const released = session.heardOf('release').flatMap(({ claims }) => claims);
  return released.some(({ taskId, epoch }) => taskId === claim.taskId && epoch === claim.epoch);
}

/** Waits until the claim is settled or released; a release is answered. */
async function ended(kit: Kit, session: KitSession, claim: OfferedClaim): Promise<'settled' | 'released'> {
  const find = () => {
    if (kit.ledger.endings(claim).length > 0) return 'settled';
    return isReleased(session, claim) ? 'released' : undefined;
  };
  const how = await kit.signals.until(find, `${claim.taskId} settled or released`);
  if (how === 'released') session.lose(claim, LeaseLossCause.RELEASED);
  return how;
}

export const leaving: readonly ConformanceCase[] = [
  {
    id: 'leave-idle',
    title: 'ends with exit code 0 after SIGTERM when it holds nothing',
    run: async (kit) => {
      const session = await kit.welcome();
      await kit.worksStill(session);
      kit.askToLeave();
      await kit.leaves(LEAVING_LIMIT_MS);
    },
  },
  {
    id: 'leave-finishing',
    title: 'says Drain after SIGTERM, lets a short handler finish, and waits for the verdict before it ends',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 400 });
      session.withhold(claim);
      session.offer(claim);
      await kit.said(claim, 'progress');
      kit.askToLeave();
      await session.frame('drain', 'the frame Drain after SIGTERM');
      await kit.completes(claim);
      await kit.signals.quiet(200);
      demand(!session.isOver, 'it left before the verdict on its ending');
      session.judge(claim, kit.ledger.said(claim).length);
      await kit.leaves(LEAVING_LIMIT_MS);
    },
  },
  {
    id: 'leave-releasing',
    title: 'hands back after SIGTERM what will not end soon, and what comes too late, and ends',
    run: async (kit) => {
      const session = await kit.welcome();
      const long = claimOf(KINDS.sleep, { ms: 600_000 });
      session.offer(long);
      await kit.said(long, 'progress');
      kit.askToLeave();
      await session.frame('drain', 'the frame Drain after SIGTERM');
      // Sent before the server had heard of the drain.
      const late = claimOf(KINDS.sleep, { ms: 600_000 });
      session.offer(late);
      const ends = [ended(kit, session, late), ended(kit, session, long)];
      await Promise.all(ends);
      await kit.leaves(LEAVING_LIMIT_MS);
    },
  },
  {
    id: 'leave-children',
    title: 'asks again for a result that waits for children, and hands the claim back when it has to leave before them',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.echo, {});
      session.withhold(claim);
      session.offer(claim);
      for (let refused = 0; !isReleased(session, claim); refused += 1) {
        const find = () => isReleased(session, claim) || kit.ledger.endings(claim).length > refused || undefined;
        await kit.signals.until(find, 'the result once more after CHILDREN_ACTIVE, or the release of its claim');
        const endings = kit.ledger.endings(claim);
        demand(
          endings.every((ending) => ending === 'completed'),
          `after CHILDREN_ACTIVE it settled with ${endings.join(', ')}`,
        );
        if (endings.length === refused) continue;
        const seq = kit.ledger.said(claim).length;
        session.judge(claim, seq, { seq, why: ErrorReason.CHILDREN_ACTIVE });
        if (refused === 1) kit.askToLeave();
      }
      session.lose(claim, LeaseLossCause.RELEASED);
      await kit.leaves(LEAVING_LIMIT_MS);
    },
  },
];
