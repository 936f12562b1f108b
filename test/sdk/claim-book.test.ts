// What becomes of events that the server does not judge: with delays that pass when the test says so.

import { fromBinary, create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import {
  ClaimSchema,
  TaskVerdictSchema,
  type WorkerEvent,
  WorkRequestSchema,
} from '../../src/gen/reeve/v1/worker_service_pb.js';
import { ClaimBook } from '../../src/sdk/worker/claim-book.js';
import type { Delay } from '../../src/sdk/worker/delays.js';
import type { HeldClaim } from '../../src/sdk/worker/held-claim.js';
import type { WorkerNotice } from '../../src/sdk/worker/notices.js';
import { Outbox } from '../../src/sdk/worker/outbox.js';
import { claimOf } from './scripted-session.js';

let waits: number[];
let due: (() => void)[];
let said: WorkerEvent[];
let notices: WorkerNotice[];
let begun: HeldClaim[];
let outbox: Outbox;
let book: ClaimBook;

const delays = {
  after: (ms: number, act: () => void): Delay => {
    waits.push(ms);
    const entry = () => act();
    due.push(entry);
    return { hasten: entry, cancel: () => void (due = due.filter((each) => each !== entry)) };
  },
};

beforeEach(() => {
  [waits, due, said, notices, begun] = [[], [], [], [], []];
  outbox = new Outbox();
  outbox.attach({
    writable: true,
    maxFrameBytes: 1_000_000,
    sendIfSilent: null,
    send: (bytes) => {
      const { frame } = fromBinary(WorkRequestSchema, bytes);
      if (frame.case === 'events') said.push(...frame.value.events);
    },
  });
  const ignore = () => undefined;
  book = new ClaimBook(outbox, delays, (notice) => notices.push(notice), {
    begin: (held) => begun.push(held),
    receipts: ignore,
    handBack: ignore,
    changed: ignore,
    settled: ignore,
  });
});

/** The words of what has been sent since the last look, by number. */
function sent(): string[] {
  outbox.flush();
  return said.splice(0).map(({ eventSeq, event }) => `${eventSeq} ${event.case}`);
}

function refuse(reason: ErrorReason, grpcCode: status, seq: number, retryAfterMs?: number): void {
  const retryAfter = retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) };
  const rejected = [{ eventSeq: BigInt(seq), refusal: { reason, grpcCode, message: 'no', ...retryAfter } }];
  book.judge([create(TaskVerdictSchema, { taskId: 't1', epoch: 1n, judgedThrough: 0n, rejected })]);
}

function pass(): void {
  for (const act of due.splice(0)) act();
}

test('a gap that stays is filled after longer and longer waits, and in the end the task fails', () => {
  book.take([create(ClaimSchema, claimOf('t1'))]);
  expect(sent()).toEqual(['1 accepted']);
  for (let times = 0; times < 10; times += 1) {
    refuse(ErrorReason.EVENT_GAP, status.FAILED_PRECONDITION, 1);
    // What comes in between is told once, not once per event.
    refuse(ErrorReason.EVENT_GAP, status.FAILED_PRECONDITION, 1);
    expect(waits).toHaveLength(times + 1);
    expect(sent()).toEqual([]);
    pass();
    expect(sent()).toEqual(['1 accepted']);
  }
  for (const [index, wait] of waits.slice(1).entries()) expect(wait).toBeGreaterThan((waits[index] ?? 0) * 0.99);
  expect(waits.at(-1)).toBeGreaterThan(5_000);
  refuse(ErrorReason.EVENT_GAP, status.FAILED_PRECONDITION, 1);
  expect(sent()).toEqual(['1 accepted', '2 started', '3 failed']);
});

test('what was filled is forgotten: the next gap is filled at once', () => {
  book.take([create(ClaimSchema, claimOf('t1'))]);
  for (let times = 0; times < 5; times += 1) {
    refuse(ErrorReason.EVENT_GAP, status.FAILED_PRECONDITION, 1);
    pass();
  }
  book.judge([create(TaskVerdictSchema, { taskId: 't1', epoch: 1n, judgedThrough: 1n })]);
  waits = [];
  refuse(ErrorReason.EVENT_GAP, status.FAILED_PRECONDITION, 3);
  expect(waits[0]).toBeLessThanOrEqual(25);
});

test('while a claim rests nothing of it is sent, and then all of it in order', () => {
  book.take([create(ClaimSchema, claimOf('t1'))]);
  sent();
  refuse(ErrorReason.STORE_UNAVAILABLE, status.UNAVAILABLE, 1, 500);
  expect(waits[0]).toBeGreaterThanOrEqual(500);
  for (const held of begun) outbox.say(held, { case: 'started', value: {} });
  expect(sent()).toEqual([]);
  pass();
  expect(sent()).toEqual(['1 accepted', '2 started']);
});

test('a store that is away is waited for as long as it takes', () => {
  book.take([create(ClaimSchema, claimOf('t1'))]);
  for (let times = 0; times < 50; times += 1) {
    refuse(ErrorReason.STORE_UNAVAILABLE, status.UNAVAILABLE, 1, 500);
    pass();
  }
  expect(new Set(sent())).toEqual(new Set(['1 accepted']));
});

test('what is refused for good is said once: the task fails, and if that is refused too the claim is given up', () => {
  book.take([create(ClaimSchema, claimOf('t1'))]);
  const [held] = begun;
  if (held === undefined) throw new Error('it was not begun');
  outbox.say(held, { case: 'started', value: {} });
  outbox.say(held, { case: 'progress', value: { message: 'poison' } });
  expect(sent()).toEqual(['1 accepted', '2 started', '3 progress']);
  book.judge([create(TaskVerdictSchema, { taskId: 't1', epoch: 1n, judgedThrough: 2n })]);
  refuse(ErrorReason.MALFORMED, status.INVALID_ARGUMENT, 3);
  outbox.flush();
  expect(said).toMatchObject([
    {
      eventSeq: 3n,
      event: { case: 'failed', value: { error: { code: 'event_refused', retryable: false } } },
    },
  ]);
  expect(held.stop.reason).toMatchObject({ name: 'LeaseLost', why: 'refused' });
  said = [];
  refuse(ErrorReason.MALFORMED, status.INVALID_ARGUMENT, 3);
  expect(notices.at(-1)).toMatchObject({ type: 'settlement_abandoned', taskId: 't1', error: { reason: 'MALFORMED' } });
  expect(sent()).toEqual([]);
  expect(book.size).toBe(0);
  expect(waits).toEqual([]);
});
