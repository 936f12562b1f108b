// A worker that breaks the contract in one way: the TypeScript SDK, with what it says and hears tampered with on the
// way. REEVE_TAMPER names the way. It shows that the conformance kit can fail.

import { Buffer } from 'node:buffer';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { TaskFailure, createWorker } from 'reeve/worker';
import { ErrorReason } from '../../dist/gen/reeve/v1/error_reason_pb.js';
import { WorkRequestSchema, WorkResponseSchema } from '../../dist/gen/reeve/v1/worker_service_pb.js';

/**
 * Per way: `say` and `hear` get a frame and return what goes on instead, bytes as they are; null: nothing. What `hear`
 * gives to its second argument is said.
 */
const ways = {
  nothing: {},
  'skips-a-number': { say: (frame) => renumbered(frame, (seq) => (seq > 2n ? seq + 1n : seq)) },
  'no-receipts': { say: (frame) => (frame.frame.case === 'cancelReceipts' ? null : frame) },
  'no-heartbeats': { say: (frame) => (frame.frame.case === 'heartbeat' ? null : frame) },
  'forgets-its-session': { say: withoutReattach },
  'says-nothing-again': { say: onlyNews() },
  'deaf-to-losses': { hear: (frame) => (frame.frame.case === 'leasesLost' ? null : frame) },
  'deaf-to-refusals': { hear: withoutRefusals },
  'runs-any-kind': { hear: (frame) => anyKind(frame) },
  'says-no-frames': { say: (frame) => (frame.frame.case === 'events' ? Buffer.from([255, 255, 255]) : frame) },
  'falls-over-news': { hear: (frame) => (frame.frame.case === undefined ? process.exit(3) : frame) },
  'believes-its-clock': { hear: (frame) => (hasExpired(frame) ? process.exit(3) : frame) },
  'holds-without-bound': { options: { maxUnansweredEvents: 1e9, maxUnansweredBytes: 1e12 } },
  'repeats-without-pause': pauseless(),
  'knows-no-task-again': {
    hear: (frame) => named(frame, ({ taskId, epoch }) => `${taskId}@${epoch}`),
    say: withPlainNames,
  },
  'keeps-what-waits': { say: (frame) => (frame.frame.case === 'release' ? null : frame) },
  'takes-no-leave': { options: { signals: ['SIGUSR2'] } },
};

let deafRunning = 0;

const { say = (frame) => frame, hear = (frame) => frame, options = {} } = ways[process.env.REEVE_TAMPER];
if (process.env.REEVE_TAMPER === 'takes-no-leave') process.on('SIGTERM', () => undefined);

function renumbered(frame, number) {
  if (frame.frame.case !== 'events') return frame;
  for (const event of frame.frame.value.events) event.eventSeq = number(event.eventSeq);
  return frame;
}

function withoutReattach(frame) {
  if (frame.frame.case === 'hello') delete frame.frame.value.reattach;
  return frame;
}

/** What is not judged is said again at once, by the wire itself. */
function pauseless() {
  let gap;
  let added = 0n;
  let sentId = 0n;
  return {
    say: (frame) => {
      frame.frameId += added;
      if (frame.frame.value.events?.some(({ eventSeq }) => eventSeq === 2n)) gap = frame;
      sentId = frame.frameId;
      return frame;
    },
    hear: (frame, answer) => {
      if (!isGap(frame)) return frame;
      added += 1n;
      sentId += 1n;
      answer({ ...gap, frameId: sentId });
      return null;
    },
  };
}

function isGap({ frame }) {
  const refusals = frame.case === 'verdicts' ? frame.value.verdicts.flatMap(({ rejected }) => rejected) : [];
  return refusals.some(({ refusal }) => refusal.reason === ErrorReason.EVENT_GAP);
}

/** Every claim is a task of its own to the worker behind. */
function named(frame, name) {
  for (const list of Object.values(frame.frame.value ?? {})) {
    if (Array.isArray(list)) for (const item of list) if (item.taskId !== undefined) item.taskId = name(item);
  }
  return frame;
}

function withPlainNames(frame) {
  return named(frame, ({ taskId }) => taskId.split('@')[0]);
}

function onlyNews() {
  const highest = new Map();
  return (frame) => {
    if (frame.frame.case !== 'events') return frame;
    const events = frame.frame.value.events.filter(({ taskId, eventSeq }) => eventSeq > (highest.get(taskId) ?? 0n));
    for (const { taskId, eventSeq } of events) highest.set(taskId, eventSeq);
    frame.frame.value.events = events;
    return events.length === 0 ? null : frame;
  };
}

function withoutRefusals(frame) {
  if (frame.frame.case === 'verdicts') for (const verdict of frame.frame.value.verdicts) verdict.rejected = [];
  return frame.frame.case === 'rejection' ? null : frame;
}

function anyKind(frame) {
  if (frame.frame.case !== 'claims') return frame;
  for (const claim of frame.frame.value.claims) {
    if (claim.actionKind === 'conformance.nobody') claim.actionKind = 'conformance.echo';
  }
  return frame;
}

function hasExpired(frame) {
  if (frame.frame.case !== 'claims') return false;
  return frame.frame.value.claims.some(({ deadline }) => deadline && Number(deadline.seconds) * 1_000 < Date.now());
}

/** Stands between the worker and the kit, on the wire: what is tampered with is none of the worker's own parts. */
async function proxyAddress() {
  const path = '/reeve.v1.WorkerService/Work';
  const raw = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  const kit = new grpc.Client(process.env.REEVE_ADDRESS, grpc.credentials.createInsecure());
  const server = new grpc.Server();
  server.addService(
    { work: { path, requestStream: true, responseStream: true, ...raw } },
    { work: (call) => relay(call, kit.makeBidiStreamRequest(path, same, same)) },
  );
  const port = await new Promise((resolve, reject) => {
    const bound = (error, given) => (error === null ? resolve(given) : reject(error));
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), bound);
  });
  return `127.0.0.1:${port}`;
}

function relay(worker, kit) {
  worker.on('data', (bytes) => {
    const said = say(fromBinary(WorkRequestSchema, bytes));
    if (said === null || kit.write(Buffer.isBuffer(said) ? said : Buffer.from(toBinary(WorkRequestSchema, said))))
      return;
    // What the kit does not take stays with the worker.
    worker.pause();
    kit.once('drain', () => worker.resume());
  });
  worker.on('end', () => kit.end());
  worker.on('cancelled', () => kit.cancel());
  kit.on('data', (bytes) => {
    const answer = (said) => void kit.write(Buffer.from(toBinary(WorkRequestSchema, said)));
    const heard = hear(fromBinary(WorkResponseSchema, bytes), answer);
    if (heard !== null) worker.write(Buffer.from(toBinary(WorkResponseSchema, heard)));
  });
  kit.on('error', () => undefined);
  kit.on('status', (status) => (status.code === grpc.status.OK ? worker.end() : worker.emit('error', status)));
}

function same(bytes) {
  return bytes;
}

const worker = createWorker({
  address: await proxyAddress(),
  slots: 16,
  drainGraceMs: 1_000,
  ...options,
  handlers: {
    'conformance.echo': ({ args }) => args,
    'conformance.fail': ({ args: { code, message, retryable } }) => {
      throw new TaskFailure(message, { code, retryable });
    },
    'conformance.sleep': async ({ args: { ms } }, { signal, progress }) => {
      for (let slept = 0; slept < ms; slept += 50) {
        await sleep(50, undefined, { signal });
        await progress(slept / ms);
      }
      return { slept: ms };
    },
    'conformance.deaf': async ({ args: { ms } }) => {
      const beside = deafRunning++;
      await sleep(ms);
      deafRunning--;
      return { beside };
    },
    'conformance.output': async ({ args: { count, bytes } }, { output }) => {
      for (let n = 0; n < count; n++) await output({ n, text: 'x'.repeat(bytes) });
      return { outputs: count };
    },
  },
});
await worker.run();
process.exit(0);
