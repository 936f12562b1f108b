// The proxy does what it says, seen from the sockets at both of its ends.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Incoming } from '../sdk/incoming.js';
import { FaultProxy } from './fault-proxy.js';

let server: Server;
let proxy: FaultProxy;
const accepted = new Incoming<Peer>();

/** A socket that writes down what it got and how it ended. */
class Peer {
  text = '';
  readonly heard = new Incoming<string>();
  readonly ended: Promise<'fin' | 'reset'>;

  constructor(readonly socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      this.text += bytes.toString();
      this.heard.push(this.text);
    });
    this.ended = new Promise((resolve) => {
      socket.once('end', () => resolve('fin'));
      socket.once('error', () => resolve('reset'));
    });
  }

  hears(text: string): Promise<string> {
    if (this.text === text) return Promise.resolve(text);
    return this.heard.find((heard) => heard === text);
  }
}

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(new Peer(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await FaultProxy.start(() => `127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(async () => {
  await proxy.close();
  for (const { socket } of accepted.all) socket.destroy();
  server.close();
});

function dial(): Peer {
  const [host = '', port] = proxy.address.split(':');
  return new Peer(connect({ host, port: Number(port), allowHalfOpen: true }));
}

async function pair(): Promise<{ readonly client: Peer; readonly service: Peer }> {
  const client = dial();
  const service = await accepted.next();
  client.socket.write('a');
  service.socket.write('z');
  await Promise.all([service.hears('a'), client.hears('z')]);
  return { client, service };
}

it('carries bytes both ways and a FIN each way, and counts', async () => {
  const { client, service } = await pair();
  client.socket.end('b');
  expect(await service.ended).toBe('fin');
  service.socket.end('y');
  expect(await client.ended).toBe('fin');
  expect([service.text, client.text]).toEqual(['ab', 'zy']);
  expect([proxy.connections, proxy.bytes]).toEqual([1, { up: 2, down: 2 }]);
});

it('delays one direction and not the other', async () => {
  const { client, service } = await pair();
  proxy.delay('up', 150);
  const begunAt = performance.now();
  client.socket.write('b');
  service.socket.write('y');
  await client.hears('zy');
  const downMs = performance.now() - begunAt;
  await service.hears('ab');
  expect(performance.now() - begunAt).toBeGreaterThanOrEqual(149);
  expect(downMs).toBeLessThan(performance.now() - begunAt);
});

it.each([
  ['cut', 'fin'],
  ['reset', 'reset'],
] as const)('%s tells both sides at once', async (how, seen) => {
  const { client, service } = await pair();
  proxy[how]();
  expect(await Promise.all([client.ended, service.ended])).toEqual([seen, seen]);
  expect((await pair()).service.text).toBe('a');
});

it('passes a reset of one side on to the other', async () => {
  const { client, service } = await pair();
  client.socket.resetAndDestroy();
  expect(await service.ended).toBe('reset');
});

it('half open, it loses everything and tells nobody, while a new connection works', async () => {
  const { client, service } = await pair();
  proxy.halfOpen();
  client.socket.write('lost');
  service.socket.end('lost');
  client.socket.resetAndDestroy();
  const fresh = await pair();
  fresh.client.socket.write('b');
  await fresh.service.hears('ab');
  expect([service.text, client.text]).toEqual(['a', 'z']);
  expect(await Promise.race([service.ended, Promise.resolve('untold')])).toBe('untold');
});

it('freezes one direction, and what was frozen comes with the thaw', async () => {
  const { client, service } = await pair();
  proxy.freeze('up');
  client.socket.write('b');
  service.socket.write('y');
  await client.hears('zy');
  expect(service.text).toBe('a');
  proxy.thaw('up');
  await service.hears('ab');
});

it('lets a frozen sender feel it', async () => {
  const { client } = await pair();
  proxy.freeze('up');
  const block = Buffer.alloc(1_048_576);
  // More than any pair of socket buffers and the proxy take.
  for (let megabytes = 0; megabytes < 32; megabytes++) client.socket.write(block);
  expect(proxy.bytes.up).toBe(1);
  expect(client.socket.writableNeedDrain).toBe(true);
  proxy.thaw('up');
  await once(client.socket, 'drain');
  expect(proxy.bytes.up).toBeGreaterThan(8 * 1_048_576);
});

it('ends a connection in the middle of what it says', async () => {
  const { client, service } = await pair();
  proxy.endAfter('up', 3, 'reset');
  client.socket.write('bcdefg');
  // The other side may read the last bytes and the reset as one, and takes that for an end.
  const [seen] = await Promise.all([client.ended, service.ended]);
  expect(seen).toBe('reset');
  expect([service.text, proxy.bytes.up]).toEqual(['abcd', 4]);
  expect((await pair()).service.text).toBe('a');
});

it('leaves new connections without an answer until told otherwise', async () => {
  proxy.pauseAccept();
  const client = dial();
  await once(client.socket, 'connect');
  client.socket.write('a');
  const known = accepted.all.length;
  expect(proxy.connections).toBe(0);
  expect(accepted.all.length).toBe(known);
  proxy.resumeAccept();
  const service = await accepted.next();
  await service.hears('a');
});
