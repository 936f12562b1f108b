// A label of affinity through a real server: two workers, one of them with the label.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { BlockerKind } from '../../src/gen/reeve/v1/task_service_pb.js';
import { readCapabilityClasses } from '../../src/deployment/capability-setting.js';
import { Worker, submitted } from './lifecycle-driver.js';
import { tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture({ capabilityClasses: readCapabilityClasses({ 'warmed-cache': 'affinity' }) });
});
afterAll(() => fixture.close());

it('prefers the worker that has it, and never waits for it', async () => {
  const queue = freshKey('queue');
  const requiredCapabilities = ['warmed-cache', 'gpu'];
  const submit = () => submitted(fixture.client, { queue, requiredCapabilities });
  const waiting = await submit();
  const reasonOf = async () => (await fixture.client.unary(tasks.explain, { taskId: waiting.taskId })).blockers[0];
  const blind = await Worker.start(fixture.client, { workerName: 'blind', queues: [queue], capabilities: [] });
  const told = await reasonOf();
  expect(told?.kind).toBe(BlockerKind.NO_WORKER_WITH_CAPABILITIES);
  expect(told?.detail).toMatch(/: gpu$/);

  const hello = { queues: [queue], slots: 1 };
  const cold = await Worker.start(fixture.client, { ...hello, workerName: 'cold', capabilities: ['gpu'] });
  expect((await cold.claim()).taskId).toBe(waiting.taskId);
  // Both have a free slot: the second task goes to who has the label, and the third to who is left.
  const warm = await Worker.start(fixture.client, {
    ...hello,
    workerName: 'warm',
    capabilities: ['gpu', 'warmed-cache'],
  });
  cold.send({ case: 'slots', value: { slots: 2 } });
  cold.send({ case: 'heartbeat', value: {} });
  await cold.frame('heartbeat');
  const second = await submit();
  expect((await warm.claim()).taskId).toBe(second.taskId);
  const third = await submit();
  expect((await cold.claim()).taskId).toBe(third.taskId);
  for (const worker of [blind, cold, warm]) worker.stop();
});
