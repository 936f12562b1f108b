// The thread itself: that it may be missing, may die, and speaks TLS.

import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../../src/sdk/client.js';
import { createWorker } from '../../src/sdk/worker.js';
import { type Fixture, startFixture } from '../server/server-fixture.js';
import { FakeServer } from './fake-server.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerProcess } from './worker-process.js';

const THREAD = 'dist/sdk/worker/stream/thread.js';
const PEM = { key: readFileSync('test/sdk/tls/key.pem'), cert: readFileSync('test/sdk/tls/cert.pem') };

let folder: string;
let fixture: Fixture;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-thread-'));
  fixture = await startFixture();
});

afterEach(async () => {
  await fixture.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A worker process on a copy of the built SDK, which the test may spoil. */
function onCopy(spoil: () => void): WorkerProcess {
  for (const part of ['dist/sdk', 'dist/gen', 'package.json']) cpSync(part, join(folder, part), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  spoil();
  const REEVE_SDK_WORKER = pathToFileURL(join(folder, 'dist/sdk/worker.js')).href;
  return new WorkerProcess(fixture.server.address, 'copy', {}, { REEVE_SDK_WORKER });
}

test('without its file the worker says so at once, and what to do', async () => {
  const worker = onCopy(() => rmSync(join(folder, THREAD)));
  const { error, message } = await worker.next('run_rejected');
  expect(error).toBe('THREAD_FAILED');
  expect(message).toContain("renewal: 'main'");
  // Nothing is left that would keep it.
  expect(await worker.ended).toBe(3);
});

test('one that dies is replaced, and the session goes on', async () => {
  const marker = join(folder, 'died');
  const worker = onCopy(() => {
    renameSync(join(folder, THREAD), join(folder, `${THREAD}.real.js`));
    const once = `import { existsSync, writeFileSync } from 'node:fs';
      import './thread.js.real.js';
      if (!existsSync('${marker}')) setTimeout(() => { writeFileSync('${marker}', ''); process.exit(1); }, 500);`;
    writeFileSync(join(folder, THREAD), once);
  });
  await worker.next('attached');
  expect(await worker.next('detached')).toMatchObject({ error: 'UNAVAILABLE' });
  expect(existsSync(marker)).toBe(true);
  await worker.next('attached');
  expect(worker.said('session_lost')).toEqual([]);
  const client = connect(fixture.server.address);
  const { task } = await client.submit({ kind: 'agent', key: 'k' });
  expect((await client.result(task.id)).result).toEqual({ by: 'copy' });
  await client.close();
  expect(await worker.stop()).toBe(0);
});

test('it speaks TLS from plain values; what it cannot be given is refused before anything starts', async () => {
  const server = await FakeServer.start();
  const front = await tlsFront(server.address);
  const address = `localhost:${(front.address() as AddressInfo).port}`;
  const worker = createWorker({ address, tls: { ca: PEM.cert }, signals: [], handlers: { agent: () => 'done' } });
  void worker.start();
  const session = await ScriptedSession.welcome(server);
  session.claim(claimOf('t1'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  await worker.drain({ graceMs: 0, answerMs: 0 });
  front.close();
  await server.stop();
  const opaque = { address, credentials: credentials.createInsecure(), handlers: { agent: () => null } };
  expect(() => createWorker({ ...opaque, renewal: 'thread' })).toThrow(TypeError);
  expect(() => createWorker(opaque)).not.toThrow();
});

/** Takes TLS off and hands the rest on. */
async function tlsFront(to: string): Promise<TlsServer> {
  const [host = '', port = ''] = to.split(':');
  const front = createTlsServer({ ...PEM, ALPNProtocols: ['h2'] }, (socket) => {
    const behind = connectSocket(Number(port), host);
    for (const end of [socket, behind]) end.on('error', () => undefined);
    socket.pipe(behind).pipe(socket);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  return front;
}
