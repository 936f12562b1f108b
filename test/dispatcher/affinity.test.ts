// Labels of affinity (lifecycle.md section 5): who has them is preferred while it has a free slot, nobody is waited for,
// and a session without them does the work as well.

import { describe, expect, it } from 'vitest';
import type { CapabilityClass } from '../../src/kernel/placement.js';
import { subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const rules = (...labels: string[]) => ({
  actionKinds: null,
  capabilityClasses: new Map<string, CapabilityClass>(labels.map((label) => [label, 'affinity'])),
});
const having = (...capabilities: string[]) => subscription({ capabilities });
const WARM = { capabilities: ['warmed-cache'] };

describe('a task with a label of affinity', () => {
  it.each([['cold first'], ['warm first']])(
    'goes to the session that has it, in whatever order they came: %s',
    async (order) => {
      const world = await World.open({ rules: rules('warmed-cache') });
      const names = order === 'cold first' ? ['cold', 'warm'] : ['warm', 'cold'];
      const workers = new Map<string, Awaited<ReturnType<typeof openWorker>>>();
      for (const name of names) {
        const serves = name === 'warm' ? having('warmed-cache') : having();
        workers.set(name, await openWorker(world, { name, slots: 3, serves }));
      }
      for (let n = 0; n < 3; n++) await world.admit(`k-${String(n)}`, WARM);
      await world.settle();
      expect(workers.get('warm')?.sink.claimed).toHaveLength(3);
      expect(workers.get('cold')?.sink.claimed).toEqual([]);
    },
  );

  it('does not wait for it: when it is busy another takes the task at once', async () => {
    const world = await World.open({ rules: rules('warmed-cache') });
    const warm = await openWorker(world, { name: 'warm', serves: having('warmed-cache') });
    const cold = await openWorker(world, { name: 'cold', slots: 2, serves: having() });
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await world.admit(`k-${String(n)}`, WARM)).admission.taskId);
    await world.settle();
    expect([warm.sink.claimedIds, cold.sink.claimedIds]).toEqual([ids.slice(0, 1), ids.slice(1)]);
  });

  it('is preferred again as soon as it has a free slot', async () => {
    const world = await World.open({ rules: rules('warmed-cache') });
    const cold = await openWorker(world, { name: 'cold', slots: 5, serves: having() });
    const warm = (await openWorker(world, { name: 'warm', serves: having('warmed-cache') })).completeAll();
    for (let n = 0; n < 4; n++) {
      await world.admit(`k-${String(n)}`, WARM);
      await world.settle();
    }
    expect([warm.sink.claimed.length, cold.sink.claimed.length]).toEqual([4, 0]);
  });

  it('goes to whoever there is, and stays in its application', async () => {
    const world = await World.open({ rules: rules('warmed-cache') });
    const cold = await openWorker(world, { name: 'cold', serves: having() });
    const { admission } = await world.admit('k', WARM);
    await world.settle();
    expect(cold.sink.claimedIds).toEqual([admission.taskId]);
    expect(cold.sink.claimed[0]?.record.admission.application.requiredCapabilities).toEqual(['warmed-cache']);
    const plain = await (await World.open()).admit('k', WARM);
    expect(admission.applicationHash).toBe(plain.admission.applicationHash);
  });

  it('prefers who has more of several', async () => {
    const world = await World.open({ rules: rules('a', 'b', 'c') });
    const one = await openWorker(world, { name: 'one', serves: having('a') });
    const other = await openWorker(world, { name: 'other', serves: having('c', 'x') });
    const two = await openWorker(world, { name: 'two', serves: having('a', 'b') });
    await world.admit('first', { capabilities: ['a', 'b'] });
    await world.admit('second', { capabilities: ['a', 'b'] });
    await world.admit('third', { capabilities: ['a', 'b'] });
    await world.settle();
    const keys = [two, one, other].map(({ sink }) => sink.claimed.map(({ record }) => record.admission.idempotencyKey));
    expect(keys).toEqual([['first'], ['second'], ['third']]);
  });

  it('still needs every label of eligibility', async () => {
    const world = await World.open({ rules: rules('warmed-cache') });
    const warm = await openWorker(world, { name: 'warm', serves: having('warmed-cache') });
    const fit = await openWorker(world, { name: 'fit', serves: having('gpu') });
    const { admission } = await world.admit('k', { capabilities: ['gpu', 'warmed-cache'] });
    await world.settle();
    expect(warm.sink.claimed).toEqual([]);
    expect(fit.sink.claimedIds).toEqual([admission.taskId]);
  });
});

describe('a label without a class', () => {
  it('is required, as without any configuration', async () => {
    const world = await World.open({ rules: rules('other') });
    const cold = await openWorker(world, { name: 'cold', serves: having() });
    await world.admit('k', WARM);
    await world.clock.advance(6_000);
    expect(cold.sink.claimed).toEqual([]);
  });
});

describe('a kind that is not registered', () => {
  it('is handed to nobody, also when its task was there before its worker', async () => {
    const world = await World.open({ rules: { actionKinds: new Set(['flow']), capabilityClasses: new Map() } });
    await world.admit('before', { kind: 'agent' });
    const all = await openWorker(world, { name: 'all', slots: 5 });
    const named = await openWorker(world, { name: 'named', slots: 5, serves: subscription({ kinds: ['agent'] }) });
    await world.admit('after', { kind: 'agent' });
    const { admission } = await world.admit('flow', { kind: 'flow' });
    await world.clock.advance(12_000);
    expect(all.sink.claimedIds).toEqual([admission.taskId]);
    expect(named.sink.claimed).toEqual([]);
  });
});
