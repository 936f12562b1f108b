// A client whose address nobody answers at, and one that nobody uses.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, type ConnectionState, type ReeveClient } from '../../src/sdk/client.js';
import { FakeServer } from './fake-server.js';
import { Incoming } from './incoming.js';

const run = promisify(execFile);

/** A port at which nobody listens. */
async function deadAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

describe.each(['dead', 'mute'])('an address that is %s', (kind) => {
  let client: ReeveClient;
  let address: string;
  let mute: Server;
  let sockets: Socket[];

  beforeEach(async () => {
    sockets = [];
    mute = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    address = kind === 'dead' ? await deadAddress() : `127.0.0.1:${(mute.address() as AddressInfo).port}`;
    client = connect(address, { connectTimeoutMs: 300, retry: { maxAttempts: 100 } });
  });

  afterEach(async () => {
    await client.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => mute.close(resolve));
  });

  const unreachable = () => ({
    name: 'ReeveError',
    reason: 'UNREACHABLE',
    retryable: true,
    message: expect.stringContaining(address) as unknown,
    metadata: { address },
  });

  test('a submission says so, and that nothing was sent', async () => {
    await expect(client.submit({ kind: 'agent', key: 'k' })).rejects.toMatchObject(unreachable());
    await expect(client.submitUnary({ kind: 'agent', key: 'k' })).rejects.toMatchObject(unreachable());
  });

  test('how long the first connection is tried is a time, however few tries a call may have', async () => {
    const once = connect(address, { connectTimeoutMs: 300, retry: { maxAttempts: 1 } });
    await expect(once.get('t')).rejects.toMatchObject({
      ...unreachable(),
      message: `nobody was reached at ${address}: no connection within 300 ms`,
    });
    await once.close();
  });

  test('so does a call, a watch, and waiting for a result', async () => {
    await expect(client.get('t')).rejects.toMatchObject(unreachable());
    await expect(client.watch('t').next()).rejects.toMatchObject(unreachable());
    await expect(client.result('t')).rejects.toMatchObject(unreachable());
  });
});

test('states of the connection are told; one that was there is waited for as long as the call allows', async () => {
  let server = await FakeServer.start();
  const { address } = server;
  server.unary.get = async () => ({ task: { taskId: 't1' } });
  const states = new Incoming<ConnectionState>();
  const client = connect(address, {
    onConnectionState: (state, of) => {
      expect(of).toBe(address);
      states.push(state);
      throw new Error('a broken log');
    },
  });
  await states.find((state) => state === 'idle');
  expect((await client.get('t1')).id).toBe('t1');
  await states.find((state) => state === 'ready');
  await server.stop();
  const later = client.submit({ kind: 'agent', key: 'k' });
  await states.find((state) => state === 'unreachable');
  server = await FakeServer.start(address);
  const peer = await server.submits.next();
  await peer.frames.next();
  peer.send({ verdicts: [{ idempotencyKey: 'k', verdict: { case: 'accepted', value: { task: { taskId: 't1' } } } }] });
  expect((await later).task.id).toBe('t1');
  await client.close();
  await states.find((state) => state === 'closed');
  await server.stop();
});

test('a client that is left open keeps no process alive', async () => {
  const server = await FakeServer.start();
  server.unary.get = async ({ taskId }) => ({ task: { taskId } });
  const answering = server.submits.next().then(async (peer) => {
    await peer.frames.next();
    peer.send({
      verdicts: [{ idempotencyKey: 'k', verdict: { case: 'accepted', value: { task: { taskId: 't1' } } } }],
    });
  });
  const script = `
    import { connect } from './dist/sdk/client.js';
    const client = connect('${server.address}');
    const { task } = await client.submit({ kind: 'agent', key: 'k' });
    console.log((await client.get(task.id)).id);`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { timeout: 15_000 });
  expect(stdout).toBe('t1\n');
  await answering;
  await server.stop();
});

test('`await using` closes the client', async () => {
  const server = await FakeServer.start();
  server.unary.get = async ({ taskId }) => ({ task: { taskId } });
  let left: ReeveClient;
  {
    await using client = connect(server.address);
    left = client;
    expect((await client.get('t1')).id).toBe('t1');
  }
  await expect(left.submit({ kind: 'agent', key: 'k' })).rejects.toThrow('the client is closed');
  await server.stop();
});
