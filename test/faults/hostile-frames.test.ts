// A worker that does not keep to the protocol of the stream: its stream ends with the documented status, or goes on, and
// the server and everybody else's work with it.

import { once } from 'node:events';
import { connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Welcome, WorkRequestSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { completed, Worker } from '../server/lifecycle-driver.js';
import { type Duplex, refusedOf, workers } from '../server/reeve-client.js';
import { eventsOf, type Frame, HostileRig } from './hostile-rig.js';

type Stream = Duplex<typeof workers.work>;

let hostile: HostileRig;
let victim: Awaited<ReturnType<HostileRig['holder']>>;
beforeAll(async () => {
  hostile = await HostileRig.open();
  // It says nothing all the time, and is not to be lost for that.
  victim = await hostile.holder({ ttl: { seconds: 600n } });
});
afterAll(() => hostile.close());

const HELLO = { workerName: 'hostile', actionKinds: ['*'], queues: ['hostile'] };
const hello = (more: object = {}): Frame => ({ case: 'hello', value: { ...HELLO, ...more } });

function open(...frames: readonly Frame[]): Stream {
  const stream = hostile.rig.raw().bidi(workers.work);
  for (const [index, frame] of frames.entries()) stream.send({ frameId: BigInt(index + 1), frame });
  return stream;
}

/** Bytes as they are, in a message of their own. */
function write(stream: Stream, bytes: Uint8Array): void {
  (stream.call as unknown as { write(bytes: Buffer): void }).write(Buffer.from(bytes));
}

function welcomeOf({ stream }: Worker): Welcome {
  const first = stream.messages[0];
  if (first?.frame.case !== 'welcome') throw new Error('no Welcome');
  return first.frame.value;
}

const first: readonly (readonly [string, readonly Frame[], object])[] = [
  ['slots', [{ case: 'slots', value: { slots: 1 } }], { reason: 'MALFORMED', field: 'frame' }],
  ['events', [{ case: 'events', value: {} }], { reason: 'MALFORMED', field: 'frame' }],
  ['nothing known', [{ case: undefined }], { reason: 'MALFORMED', field: 'frame' }],
  ['Hello without a name', [hello({ workerName: '' })], { reason: 'MALFORMED', field: 'hello.worker_name' }],
  ['Hello without kinds', [hello({ actionKinds: [] })], { reason: 'MALFORMED', field: 'hello.action_kinds' }],
  ['Hello with negative slots', [hello({ slots: -1 })], { reason: 'MALFORMED', field: 'hello.slots' }],
  ['Hello with huge slots', [hello({ slots: 2 ** 31 - 1 })], { reason: 'MALFORMED', field: 'hello.slots' }],
  ['Hello twice', [hello(), hello()], { reason: 'MALFORMED', field: 'frame' }],
  [
    'a re-attach to an unknown session',
    [hello({ reattach: { sessionId: 'unknown', sessionSecret: 'wrong' } })],
    { code: status.FAILED_PRECONDITION, reason: 'SESSION_GONE' },
  ],
];

it.concurrent.for(first)('a stream that begins with %s', async ([, frames, refused]) => {
  expect(refusedOf(await open(...frames).ended)).toMatchObject(refused);
  await hostile.othersAreWell(victim);
});

it.concurrent('bytes that are no message', async () => {
  const stream = open(hello());
  await stream.next();
  write(stream, Buffer.from('ff'.repeat(64), 'hex'));
  expect(refusedOf(await stream.ended)).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'MALFORMED' });
  await hostile.othersAreWell(victim);
});

it.concurrent('a kind of frame from a later version is answered and ends nothing', async () => {
  const stream = open(hello());
  await stream.next();
  // Field 1 = 7 (frame_id), field 500 = 3 bytes.
  write(stream, Buffer.from([0x08, 0x07, 0xa2, 0x1f, 0x03, 0x61, 0x62, 0x63]));
  expect((await stream.next())?.frame).toMatchObject({ case: 'rejection', value: { frameId: 7n } });
  stream.half();
  expect(await stream.ended).toBeNull();
});

it.concurrent('a frame of more than 2 MiB', async () => {
  const { worker, claim } = await hostile.holder();
  const text = JSON.stringify('x'.repeat(2 * 1_048_576));
  worker.send(eventsOf(claim, [3, { case: 'output', value: { content: { case: 'outputJson', value: text } } }]));
  expect(refusedOf(await worker.stream.ended)).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  expect(await hostile.rig.reeve.get(claim.taskId)).toMatchObject({ status: 'running', lastEventNumber: 4 });
  await hostile.othersAreWell(victim);
});

it.concurrent('half a frame and a reset', async () => {
  const proxy = await hostile.rig.proxy();
  const worker = await Worker.start(hostile.rig.raw(proxy.address));
  const taskId = await hostile.rig.submit(worker.queue);
  const claim = await worker.claim();
  proxy.endAfter('up', 50_000, 'reset');
  const event = { case: 'checkpoint' as const, value: { checkpointJson: JSON.stringify('x'.repeat(100_000)) } };
  worker.send(eventsOf(claim, [1, event]));
  expect(refusedOf(await worker.stream.ended)).toMatchObject({ code: status.UNAVAILABLE });
  expect(await hostile.rig.typesOf(taskId)).toEqual(['submitted', 'claimed']);
  await hostile.othersAreWell(victim);
});

it.concurrent('a wrong secret for a session that lives', async () => {
  const { sessionId, sessionSecret } = welcomeOf(victim.worker);
  const wrong = sessionSecret.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  const stream = open(hello({ reattach: { sessionId, sessionSecret: wrong, held: [] } }));
  expect(refusedOf(await stream.ended)).toMatchObject({ reason: 'SESSION_GONE' });
  await hostile.othersAreWell(victim);
});

it.concurrent('a session that has ended', async () => {
  const { worker, claim } = await hostile.holder({ linger: { seconds: 0n } });
  const { sessionId, sessionSecret } = welcomeOf(worker);
  worker.stream.cancel();
  const watched = hostile.rig.reeve.watch(claim.taskId);
  for await (const { type } of watched) if (type === 'reeve.task.requeued') break;
  const held = [{ taskId: claim.taskId, epoch: claim.epoch, answeredThrough: 2n }];
  const stream = open(hello({ reattach: { sessionId, sessionSecret, held } }));
  expect(refusedOf(await stream.ended)).toMatchObject({ reason: 'SESSION_GONE' });
  await hostile.othersAreWell(victim);
});

it.concurrent('an older attachment that goes on speaking', async () => {
  const proxy = await hostile.rig.proxy();
  const older = await Worker.start(hostile.rig.raw(proxy.address));
  const taskId = await hostile.rig.submit(older.queue);
  const claim = await older.claim();
  const { sessionId, sessionSecret } = welcomeOf(older);
  // It does not hear that it is the older one, and what it says arrives when it is.
  proxy.freeze('up');
  proxy.freeze('down');
  older.send(eventsOf(claim, [1, { case: 'failed', value: { error: { code: 'late', message: '' } } }]));
  older.send({ case: 'drain', value: {} });
  older.send({ case: 'heartbeat', value: { held: [] } });
  const held = [{ taskId, epoch: claim.epoch, answeredThrough: 0n }];
  const newer = await Worker.start(hostile.rig.raw(), {
    queues: [older.queue],
    reattach: { sessionId, sessionSecret, held },
  });
  expect(welcomeOf(newer)).toMatchObject({ attachment: 2n, leasesKept: [{ taskId }] });
  proxy.thaw('up');
  proxy.thaw('down');
  expect(refusedOf(await older.stream.ended)).toMatchObject({ reason: 'SESSION_GONE', metadata: { attachment: '2' } });
  await hostile.rig.submit(older.queue);
  await newer.claim();
  expect(await hostile.rig.typesOf(taskId)).toEqual(['submitted', 'claimed']);
  newer.stream.cancel();
  await hostile.othersAreWell(victim);
});

it.concurrent('two sessions of one name are two', async () => {
  const [one, two] = [await hostile.holder({ workerName: 'twin' }), await hostile.holder({ workerName: 'twin' })];
  const { workers: seen } = await hostile.rig.raw().unary(workers.listWorkers, { workerName: 'twin' });
  expect(seen.map(({ held, attached }) => [held, attached])).toEqual([
    [1, true],
    [1, true],
  ]);
  expect(await hostile.answersTo(one.worker, eventsOf(two.claim, [3, completed]))).toContain('event 3: LEASE_LOST');
  expect(await hostile.answersTo(two.worker, eventsOf(two.claim, [3, completed]))).toEqual(['through 3']);
  for (const { worker } of [one, two]) worker.stream.cancel();
});

it('a flood of 100,000 frames in one piece is read to its end while others are served', async () => {
  const connection = connect(`http://${hostile.rig.server.address}`);
  const headers = { ':path': '/reeve.v1.WorkerService/Work', ':method': 'POST', te: 'trailers' };
  const stream = connection.request({ ...headers, 'content-type': 'application/grpc' });
  // The second Hello is the hundred thousand and second frame, and ends what was read that far.
  const slots = prefixed({ case: 'slots', value: { slots: 1 } });
  const ended = once(stream, 'trailers');
  stream.resume();
  stream.write(Buffer.concat([prefixed(hello()), ...Array<Buffer>(100_000).fill(slots), prefixed(hello())]));
  await hostile.othersAreWell(victim);
  const [trailers] = (await ended) as [Record<string, string>];
  expect(trailers).toMatchObject({ 'grpc-status': '3', 'grpc-message': expect.stringContaining('once') as string });
  connection.close();
});

it('a hundred streams that never say Hello keep nobody out', async () => {
  const silent = Array.from({ length: 100 }, () => hostile.rig.raw().bidi(workers.work));
  await hostile.othersAreWell(victim);
  for (const stream of silent) stream.cancel();
});

/** A message as gRPC puts it on the wire. */
function prefixed(frame: Frame): Buffer {
  const bytes = toBinary(WorkRequestSchema, create(WorkRequestSchema, { frame }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}
