// A worker in a real process: that it starts however the program was given to node, and that it lets the process go.

import { fileURLToPath } from 'node:url';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { threadFlags } from '../../src/sdk/worker/stream/thread-flags.js';
import { FakeServer } from './fake-server.js';
import { ProcessLines } from './process-lines.js';
import { claimOf, ScriptedSession } from './scripted-session.js';

const LEAVING = fileURLToPath(new URL('./leaving-worker.mjs', import.meta.url));
const SDK = new URL('../../dist/sdk/worker.js', import.meta.url).href;

let server: FakeServer;
let worker: ProcessLines | undefined;

beforeEach(async () => {
  server = await FakeServer.start();
});

afterEach(async () => {
  worker?.kill();
  await server.stop();
});

/** Does one task and leaves, or tells why it cannot start. Without a line break: some of them take one line. */
const ONE_TASK = `const say = (type, error) => console.log(JSON.stringify({ type, error }));
  import('${SDK}').then(async ({ createWorker }) => {
    const worker = createWorker({
      address: process.env.REEVE_ADDRESS,
      handlers: { agent: () => 'done' },
      onSettled: () => void worker.stop(),
    });
    await worker.run().then(() => say('over'), (error) => say('rejected', error.message));
  });`.replaceAll(/\s+/g, ' ');

test.each<[string, readonly string[], string, Record<string, string>]>([
  ['node --input-type=module -e', ['--input-type=module', '-e', ONE_TASK], '', {}],
  ['node -e', ['-e', ONE_TASK], '', {}],
  ['node --print', ['--print', ONE_TASK], '', {}],
  ['node --input-type=module, from stdin', ['--input-type=module'], ONE_TASK, {}],
  ['node -, from stdin', ['-'], ONE_TASK, {}],
  ['flags of the whole process beside', ['--max-old-space-size=200', '--input-type=module'], ONE_TASK, {}],
  ['NODE_OPTIONS', [], ONE_TASK, { NODE_OPTIONS: '--input-type=module' }],
])('it starts by %s', async (_how, args, stdin, env) => {
  worker = new ProcessLines(args, stdin, { ...env, REEVE_ADDRESS: server.address });
  const told = worker.lines.next();
  // Who can't start says so, and no stream comes.
  const session = await Promise.race([ScriptedSession.welcome(server), told]);
  if (!(session instanceof ScriptedSession)) throw new Error(session.error);
  session.claim(claimOf('t1'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  session.judge('t1', 3);
  await session.peer.ended;
  session.peer.end();
  expect(await told).toEqual({ type: 'over' });
  expect(await worker.ended).toBe(0);
});

test('a thread inherits what is not about the main script', () => {
  const flags = [
    '--import',
    './hook.mjs',
    '--input-type',
    'module',
    '-p',
    '-e',
    'code',
    '--conditions=x',
    '--eval=y',
    '-i',
  ];
  expect(threadFlags(flags)).toEqual(['--import', './hook.mjs', '--conditions=x']);
});

test.each(['thread', 'main'])('with renewal in %s nothing holds the process once it is over', async (renewal) => {
  worker = new ProcessLines([LEAVING, server.address, renewal], '');
  const session = await ScriptedSession.welcome(server, { heartbeatInterval: durationFromMs(60_000) });
  const deadline = { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600), nanos: 0 };
  session.claim(claimOf('t1', { deadline }), claimOf('t2', { actionKind: 'flow' }), claimOf('t3'));
  await worker.next('running');
  await session.events(7);
  // Its result is asked for again in an hour, and its handler's events once more in another.
  const hour = durationFromMs(3_600_000);
  const later = { reason: ErrorReason.STORE_UNAVAILABLE, grpcCode: status.UNAVAILABLE, retryAfter: hour };
  session.judge('t2', 3, [{ eventSeq: 3n, refusal: later }]);
  session.judge('t3', 0, [{ eventSeq: 1n, refusal: later }]);
  session.peer.send({ frame: { case: 'drain', value: { reconnectAfter: hour } } });
  const { left } = await worker.next('over');
  expect(left?.filter((name) => name !== 'Immediate')).toEqual([]);
  expect(await worker.ended).toBe(0);
});
