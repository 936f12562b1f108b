/**
 * What every language's worker and client examples have to do together, against a real server.
 */
import { expect } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { submitted } from '../server/lifecycle-driver.js';
import { tasks } from '../server/reeve-client.js';
import type { Fixture } from '../server/server-fixture.js';
import { ExampleProcess } from './example-process.js';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export async function expectGreeting({ client, server }: Fixture, worker: Program, user: Program): Promise<void> {
  const env = { REEVE_ADDRESS: server.address };
  const running = new ExampleProcess(worker.command, worker.args, { ...worker.env, ...env });
  const run = (...more: string[]) =>
    ExampleProcess.output(user.command, [...user.args, ...more], { ...user.env, ...env });
  const said = await run('Ada');
  expect(said).toMatch(/^SUBMIT_OUTCOME_CREATED \S+$/m);
  expect(said).toMatch(/^task\.progress .*signing/m);
  expect(said).toMatch(/^TASK_STATUS_COMPLETED .*Hello, Ada!/m);
  expect(await run('Ada')).toMatch(/^SUBMIT_OUTCOME_REPLAYED \S+$/m);
  const unserved = await submitted(client, { actionKind: 'flow' });
  expect(await run('cancel', unserved.taskId)).toMatch(/^CANCEL_STATE_CANCELLED$/m);
  const { task } = await client.unary(tasks.get, { taskId: unserved.taskId });
  expect(task?.status).toBe(TaskStatus.CANCELLED);
  expect(await running.leave()).toBe(0);
}
