// A worker that says what it must not, about its own claim and about those of others: every word has its documented
// answer, changes nothing that is not its own, and nobody else notices.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ReceiptKind } from '../../src/gen/reeve/v1/task_pb.js';
import type { Claim } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { accepted, completed, type Event, started } from '../server/lifecycle-driver.js';
import { eventsOf, type Frame, HostileRig } from './hostile-rig.js';

let hostile: HostileRig;
let victim: Awaited<ReturnType<HostileRig['holder']>>;
beforeAll(async () => {
  hostile = await HostileRig.open();
  // It says nothing all the time, and is not to be lost for that.
  victim = await hostile.holder({ ttl: { seconds: 600n } });
});
afterAll(() => hostile.close());

const progress = (fraction: number): Event => ({ case: 'progress', value: { fraction } });
const output = (outputJson: string): Event => ({
  case: 'output',
  value: { content: { case: 'outputJson', value: outputJson } },
});
const MIB = 1_048_576;
const NOBODY = { taskId: 'nobody', generation: 1, epoch: 1n };

/** What is said, given the claim of the one who says it and that of the victim; what is answered. */
const words: readonly (readonly [string, (own: Claim, others: Claim) => readonly Frame[], readonly string[]])[] = [
  // Of claims that are not its own.
  [
    'events of a claim of another session',
    (_, o) => [eventsOf(o, [3, completed])],
    ['event 3: LEASE_LOST', 'through 0'],
  ],
  [
    'the next event number of another session',
    (_, o) => [eventsOf(o, [1, accepted])],
    ['event 1: LEASE_LOST', 'through 0'],
  ],
  ['events of an unknown task', () => [eventsOf(NOBODY, [1, accepted])], ['event 1: TASK_NOT_FOUND', 'through 0']],
  [
    'events of an epoch to come',
    (own) => [eventsOf({ ...own, epoch: 9n }, [1, completed])],
    ['event 1: LEASE_LOST', 'through 0'],
  ],
  [
    'events of no epoch',
    (own) => [eventsOf({ ...own, epoch: 0n }, [3, completed])],
    ['refused: MALFORMED events[0].epoch'],
  ],
  [
    'events of another generation',
    (own) => [eventsOf({ ...own, generation: 2 }, [3, completed])],
    ['event 3: LEASE_LOST', 'through 2'],
  ],
  [
    'events of no task',
    (own) => [eventsOf({ ...own, taskId: '' }, [3, completed])],
    ['refused: MALFORMED events[0].task_id'],
  ],
  // Numbers.
  ['event 0', (own) => [eventsOf(own, [0, completed])], ['refused: MALFORMED events[0].event_seq']],
  ['event −1', (own) => [eventsOf(own, [-1, completed])], ['refused: MALFORMED events[0].event_seq']],
  [
    'an event number beyond what is exact',
    (own) => [eventsOf(own, [2n ** 63n - 1n, completed])],
    ['refused: MALFORMED events[0].event_seq'],
  ],
  [
    'the largest event number',
    (own) => [eventsOf(own, [2 ** 53 - 1, completed])],
    [`event ${2 ** 53 - 1}: EVENT_GAP`, 'through 2'],
  ],
  ['an event that leaves a gap', (own) => [eventsOf(own, [4, completed])], ['event 4: EVENT_GAP', 'through 2']],
  [
    'a gap within a frame',
    (own) => [eventsOf(own, [3, progress(0.1)], [5, completed])],
    ['event 5: EVENT_GAP', 'through 3'],
  ],
  ['events that it has said before', (own) => [eventsOf(own, [1, accepted], [2, completed])], ['through 2']],
  [
    'numbers that go down',
    (own) => [eventsOf(own, [4, completed], [3, progress(0.1)])],
    ['event 4: EVENT_GAP', 'through 2'],
  ],
  // What the AEP table forbids.
  ['a second accepted', (own) => [eventsOf(own, [3, accepted])], ['event 3: ILLEGAL_EVENT', 'through 3']],
  [
    'two settlements in a frame',
    (own) => [eventsOf(own, [3, completed], [4, { case: 'cancelled', value: {} }])],
    ['event 4: LEASE_LOST', 'through 3'],
  ],
  [
    'a second settlement',
    (own) => [eventsOf(own, [3, completed]), eventsOf(own, [4, completed])],
    ['through 3', 'event 4: LEASE_LOST', 'through 3'],
  ],
  // Contents.
  [
    'progress of NaN',
    (own) => [eventsOf(own, [3, progress(Number.NaN)])],
    ['event 3: MALFORMED progress.fraction', 'through 3'],
  ],
  ['progress of 2', (own) => [eventsOf(own, [3, progress(2)])], ['event 3: MALFORMED progress.fraction', 'through 3']],
  [
    'an output that is no JSON',
    (own) => [eventsOf(own, [3, output('{"a":')])],
    ['event 3: MALFORMED output.output_json', 'through 3'],
  ],
  ['an output with a lone surrogate', (own) => [eventsOf(own, [3, output('"\\ud800"')])], ['through 3']],
  [
    'an output over its limit',
    (own) => [eventsOf(own, [3, output(JSON.stringify('x'.repeat(MIB)))])],
    ['event 3: MALFORMED output.output_json', 'through 3'],
  ],
  ['no event at all', (own) => [eventsOf(own, [3, { case: undefined }])], ['event 3: UNSUPPORTED', 'through 3']],
  ['an empty list', () => [{ case: 'events', value: { events: [] } }], []],
  // Receipts, releases, heartbeats.
  [
    'a receipt for a cancel that nobody asked for',
    ({ taskId, generation, epoch, cancellationToken }) => [receipt({ taskId, generation, epoch, cancellationToken })],
    [],
  ],
  [
    'a receipt with the token of nobody',
    (_, { taskId, generation, epoch }) => [receipt({ taskId, generation, epoch, cancellationToken: 'guessed' })],
    [],
  ],
  [
    'a receipt with the token of another claim',
    (own, { taskId, generation, epoch }) => [
      receipt({ taskId, generation, epoch, cancellationToken: own.cancellationToken }),
    ],
    [],
  ],
  [
    'a stolen token',
    (_, { taskId, generation, epoch, cancellationToken }) => [
      receipt({ taskId, generation, epoch, cancellationToken }),
    ],
    [],
  ],
  [
    'a receipt of settlement',
    (own) => [receipt({ ...own, kind: ReceiptKind.SETTLED })],
    ['refused: MALFORMED receipts[0].kind'],
  ],
  ['a release without a drain', (own) => [release(own)], ['refused: INVALID_TRANSITION']],
  ['a release of what another holds', (_, o) => [{ case: 'drain', value: {} }, release(o)], ['lost: SUPERSEDED']],
  ['a release of nothing known', () => [{ case: 'drain', value: {} }, release(NOBODY)], ['refused: TASK_NOT_FOUND']],
  [
    'a heartbeat that names the claims of others',
    (_, o) => [{ case: 'heartbeat', value: { held: [o, NOBODY].map(({ taskId, epoch }) => ({ taskId, epoch })) } }],
    ['heartbeat'],
  ],
  [
    'a heartbeat that names epoch 0',
    (own) => [{ case: 'heartbeat', value: { held: [{ taskId: own.taskId, epoch: 0n }] } }],
    ['refused: MALFORMED heartbeat.held[0].epoch'],
  ],
  ['negative slots', () => [{ case: 'slots', value: { slots: -1 } }], ['refused: MALFORMED slots']],
  ['huge slots', () => [{ case: 'slots', value: { slots: 2 ** 31 - 1 } }], ['refused: MALFORMED slots']],
  ['a rejection of what was never sent', () => [{ case: 'rejection', value: { frameId: 99n } }], []],
  ['an unknown kind of frame', () => [{ case: undefined }], ['refused: UNSUPPORTED']],
];

it.concurrent.for(words)('%s', async ([, say, answers]) => {
  const { worker, claim } = await hostile.holder();
  expect(await hostile.answersTo(worker, ...say(claim, victim.claim))).toEqual(answers);
  worker.stream.cancel();
  await hostile.othersAreWell(victim);
});

it('completed before started, and started before accepted, use up their numbers', async () => {
  const { worker } = await hostile.holder();
  await hostile.rig.submit(worker.queue);
  const claim = await worker.claim();
  const said = [eventsOf(claim, [1, completed]), eventsOf(claim, [2, started], [3, accepted], [4, completed])];
  expect(await hostile.answersTo(worker, ...said)).toEqual([
    ...['event 1: ILLEGAL_EVENT', 'through 1'],
    ...['event 2: ILLEGAL_EVENT', 'event 4: ILLEGAL_EVENT', 'through 4'],
  ]);
  worker.stream.cancel();
  await hostile.othersAreWell(victim);
});

it('more outputs than an attempt may have are dropped, and the task says so', async () => {
  const { worker, claim } = await hostile.holder();
  for (let from = 3; from < 10_203; from += 1_200) {
    const outputs = Array.from({ length: 1_200 }, (_, index) => [from + index, output('1')] as const);
    expect(await hostile.answersTo(worker, eventsOf(claim, ...outputs))).toContain(`through ${from + 1_199}`);
  }
  expect(await hostile.rig.reeve.get(claim.taskId)).toMatchObject({ status: 'running', outputTruncated: true });
  worker.stream.cancel();
  await hostile.othersAreWell(victim);
});

it('a claim that heartbeats never name is handed back after a TTL', { timeout: 30_000 }, async () => {
  const { worker, claim } = await hostile.holder({ ttl: { seconds: 2n } });
  const answers: string[] = [];
  while (!answers.includes('claims')) answers.push(...(await hostile.answersTo(worker)));
  expect(answers).toEqual(['lost: NOT_HELD', 'claims']);
  expect(await hostile.rig.reeve.get(claim.taskId)).toMatchObject({ lease: { epoch: 2 }, attempt: 2 });
  worker.stream.cancel();
  await hostile.othersAreWell(victim);
});

function receipt(value: {
  taskId: string;
  generation: number;
  epoch: bigint;
  cancellationToken: string;
  kind?: ReceiptKind;
}): Frame {
  const { taskId, generation, epoch, cancellationToken, kind = ReceiptKind.ACKNOWLEDGED } = value;
  return { case: 'cancelReceipts', value: { receipts: [{ taskId, generation, epoch, cancellationToken, kind }] } };
}

function release({ taskId, generation, epoch }: Pick<Claim, 'taskId' | 'generation' | 'epoch'>): Frame {
  return { case: 'release', value: { claims: [{ taskId, generation, epoch }] } };
}
