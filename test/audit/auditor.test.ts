// What is found is looked at again: what has passed by then is not told, what stays is, and a page is never larger than
// it may be.

import { expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { authorityCause } from '../../src/kernel/cause.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { AuditQuery } from '../../src/store/audit-rows.js';
import { sessionRow } from '../contract/sample-plans.js';
import { causeOf } from '../support/submissions.js';
import { World } from '../support/world.js';

const ALL: AuditQuery = { taskIds: null, after: 0, limit: 10 };

/** A task that runs under a session that is gone: somebody is about to take its lease. */
async function orphaned(): Promise<{ readonly world: World; readonly auditor: Auditor }> {
  const world = await World.open({ dispatcher: null });
  const expiresAt = world.clock.nowMs() + 60_000;
  await world.authority.writeSession({ kind: 'open', session: sessionRow('s', { expiresAt }) });
  await world.admit('a', { taskId: 'a' });
  const claim = { sessionId: 's', worker: 'w', sessionTtlMs: 60_000, acceptTimeoutMs: 60_000 };
  await world.apply({ taskId: 'a', intent: { kind: 'claim', ...claim, cause: causeOf('worker') } });
  await world.authority.writeSession({ kind: 'end', sessionId: 's', attachment: 1 });
  return { world, auditor: new Auditor(world.authority, () => world.clock.nowMs()) };
}

it('does not tell what somebody saw to between two looks', async () => {
  const { world, auditor } = await orphaned();
  const page = auditor.page(ALL);
  await world.settle();
  // The first look has found it, and so does the second; then its lease is taken.
  await world.clock.advance(100);
  await world.settle();
  const cause = authorityCause('reaper', reason('run.requeued.lease_lost'), 's');
  await world.apply({ taskId: 'a', intent: { kind: 'session_lost', sessionId: 's', cause } });
  await world.clock.advance(1_000);
  expect(await page).toMatchObject({ tasks: 1, findings: [], next: null });
});

it('tells what is still there at the last look', async () => {
  const { world, auditor } = await orphaned();
  let told = false;
  const page = auditor.page(ALL).finally(() => (told = true));
  await world.settle();
  for (const ms of [100, 1_000]) {
    await world.clock.advance(ms);
    await world.settle();
    expect(told).toBe(false);
  }
  await world.clock.advance(3_000);
  expect((await page).findings).toMatchObject([{ taskId: 'a', invariant: 'record.session' }]);
});

it('goes on behind the tasks that it has told of, and names the ids that no task has', async () => {
  const world = await World.open({ dispatcher: null });
  for (const taskId of ['a', 'b', 'c']) await world.admit(taskId, { taskId });
  const auditor = new Auditor(world.authority, () => 0);
  const first = await auditor.page({ ...ALL, limit: 2 });
  expect(first).toMatchObject({ tasks: 2, events: 2, links: 2, findings: [], unknown: [] });
  expect(await auditor.page({ ...ALL, after: first.next ?? 99 })).toMatchObject({ tasks: 1, next: null });
  const named = await auditor.page({ taskIds: ['x', 'b', 'y'], after: 0, limit: 10 });
  expect(named).toMatchObject({ tasks: 1, unknown: ['x', 'y'], next: null });
});
