/**
 * How a worker comes in, and how it stays.
 */
import { demand, type ConformanceCase } from '../case.js';
import { KINDS, LEAST_SLOTS } from '../kit-contract.js';
import { claimOf } from '../offered-claim.js';

const HEARTBEAT_MS = 500;

export const firstWords: readonly ConformanceCase[] = [
  {
    id: 'hello',
    title: 'says Hello first, with its name, its kinds and its slots',
    run: async (kit) => {
      const session = await kit.welcome();
      const { workerName, actionKinds, slots, namespaces } = session.hello;
      demand(workerName !== '', 'worker_name is empty');
      for (const kind of Object.values(KINDS)) {
        demand(actionKinds.includes(kind), `action_kinds (${actionKinds.join(', ')}) does not name ${kind}`);
      }
      demand(!actionKinds.includes('*'), 'action_kinds is *: the kit needs a worker that names its kinds');
      demand(slots >= LEAST_SLOTS, `slots is ${slots}, the kit needs at least ${LEAST_SLOTS}`);
      const servesDefault = namespaces.length === 0 || namespaces.includes('default');
      demand(servesDefault, `namespaces (${namespaces.join(', ')}) does not name default`);
      await kit.worksStill(session);
    },
  },
  {
    id: 'heartbeats',
    title: 'sends heartbeats that name what it holds, until the verdict on the ending has come',
    run: async (kit) => {
      const session = await kit.welcome({ ttlMs: 3 * HEARTBEAT_MS, heartbeatMs: HEARTBEAT_MS });
      const claim = claimOf(KINDS.sleep, { ms: 2 * HEARTBEAT_MS });
      session.withhold(claim);
      session.offer(claim);
      const names = (held: readonly { taskId: string; epoch: bigint }[]) =>
        held.some(({ taskId, epoch }) => taskId === claim.taskId && epoch === claim.epoch);
      await kit.said(claim, 'accepted');
      const accepted = session.mark;
      await session.frame('heartbeat', 'a heartbeat that names the claim', ({ held }) => names(held), accepted);
      await kit.completes(claim);
      const completed = session.mark;
      const find = () => session.heardOf('heartbeat', completed)[1];
      const afterEnding = await kit.signals.until(find, 'two heartbeats after the ending');
      demand(names(afterEnding.held), 'a heartbeat does not name the claim though its ending has no verdict yet');
      session.judge(claim, kit.ledger.said(claim).length);
      const judged = session.mark;
      const what = 'a heartbeat that no longer names the claim, after the verdict on its ending';
      await session.frame('heartbeat', what, ({ held }) => !names(held), judged);
    },
  },
];
