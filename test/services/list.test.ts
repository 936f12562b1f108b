// What a page of running tasks costs the store.

import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ListRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { Lists } from '../../src/services/list.js';
import { TaskViews } from '../../src/services/task-views.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { openWorker } from '../support/test-worker.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';

it('reads each session once, however many of its tasks a page shows', async () => {
  const world = await World.open();
  await openWorker(world, { slots: 20 });
  for (let index = 0; index < 20; index += 1) await world.admit(`task-${index}`);
  await turns();
  const { authority } = world;
  const lists = new Lists(authority, new TaskViews(authority), new TokenMint('secret'));
  const before = world.probe.calls.get('loadSession') ?? 0;
  const { tasks } = await lists.list(create(ListRequestSchema, {}));
  expect(tasks).toHaveLength(20);
  for (const task of tasks ?? []) expect(task.lease?.expireTime).toBeDefined();
  expect((world.probe.calls.get('loadSession') ?? 0) - before).toBe(1);
});
