// Stopping a server: workers are told first, nothing acknowledged is lost, everything is closed in order.

import { expect, it } from 'vitest';
import { ExecutionTarget } from '../../src/gen/reeve/v1/task_pb.js';
import { Worker, completed, running, submitted } from './lifecycle-driver.js';
import { refusedOf, tasks } from './reeve-client.js';
import { freshKey, startFixture } from './server-fixture.js';

it('tells the workers, lets them finish within the grace, and claims nothing more', async () => {
  const { server, client } = await startFixture();
  const { task, claim, worker } = await running(client);
  const stopping = server.stop(10_000);
  const drain = await worker.frame('drain');
  expect(drain.grace).toMatchObject({ seconds: 10n });
  expect(Number(drain.reconnectAfter?.seconds)).toBeGreaterThanOrEqual(1);
  await submitted(client, { queue: worker.queue });
  expect(await worker.say(claim, [completed], 3)).toMatchObject({ judgedThrough: 3n });
  expect(await client.unary(tasks.get, { taskId: task.taskId })).toMatchObject({ task: { status: 6 } });
  worker.stop();
  expect(await worker.stream.ended).toBeNull();
  await stopping;
  expect(worker.stream.messages.filter(({ frame }) => frame.case === 'claims')).toHaveLength(1);
  client.close();
});

it('ends the streams of workers who stay, once the grace is over', async () => {
  const { server, client } = await startFixture();
  const worker = await Worker.start(client);
  await server.stop(100);
  expect(refusedOf(await worker.stream.ended)).toMatchObject({ code: 14, reason: 'DRAINING' });
  await server.stop(100);
  client.close();
});

it('answers everything that it accepted', async () => {
  const { server, client } = await startFixture();
  const stream = client.bidi(tasks.submitStream);
  const total = 3_000;
  for (let sent = 0; sent < total; sent += 500) {
    const submissions = Array.from({ length: 500 }, () => ({
      idempotencyKey: freshKey(),
      actionKind: 'agent',
      executionTarget: ExecutionTarget.HOST,
    }));
    stream.send({ submissions });
  }
  stream.half();
  await stream.next();
  await server.stop(0);
  await stream.ended;
  const verdicts = stream.messages.flatMap((message) => message.verdicts);
  const refused = verdicts.filter(({ verdict }) => verdict.case === 'refused');
  expect(refused.every(({ verdict }) => verdict.case === 'refused' && verdict.value.grpcCode === 14)).toBe(true);
  expect(verdicts).toHaveLength(total);
  client.close();
});
