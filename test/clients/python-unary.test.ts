/**
 * The Python example works: its stubs come from its README's command, and it runs against a real server.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { submitted } from '../server/lifecycle-driver.js';
import { tasks } from '../server/reeve-client.js';
import { type Fixture, freshKey, startFixture } from '../server/server-fixture.js';
import { PYTHON, triesPython } from './python.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const stubs = mkdtempSync(join(tmpdir(), 'reeve-python-'));
const run = promisify(execFile);

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(async () => {
  await fixture.close();
  rmSync(stubs, { recursive: true, force: true });
});

const options = { cwd: ROOT, timeout: 60_000 };

it.runIf(triesPython)('claims, renews, tells and settles by unary calls', { timeout: 90_000 }, async () => {
  const protos = readdirSync(join(ROOT, 'proto/reeve/v1')).map((name) => `proto/reeve/v1/${name}`);
  const generate = ['-m', 'grpc_tools.protoc', '-Iproto', `--python_out=${stubs}`, `--grpc_python_out=${stubs}`];
  await run(PYTHON, [...generate, ...protos], options);
  const queue = freshKey('queue');
  const made = [await submitted(fixture.client, { queue }), await submitted(fixture.client, { queue })];
  const env = { ...process.env, PYTHONPATH: stubs, REEVE_ADDRESS: fixture.server.address, QUEUE: queue };
  const { stdout } = await run(PYTHON, ['examples/python-unary/worker.py'], { ...options, env });
  expect(stdout.trim().split('\n')).toEqual(made.map(({ taskId }) => `${taskId} reported`));
  for (const { taskId } of made) {
    const { task } = await fixture.client.unary(tasks.get, { taskId, view: 3 });
    expect(task).toMatchObject({ status: TaskStatus.COMPLETED, resultJson: '{"answer": 42}', attempt: 1 });
  }
});
