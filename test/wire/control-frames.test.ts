// Lists of control frames, however long and however wordy, go out in frames that the wire takes.

import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { WorkResponseSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { CancelNotice, LeaseLoss } from '../../src/kernel/delivery.js';
import {
  type FrameContent,
  cancelsFrame,
  leasesLostFrame,
  splitCancels,
  splitLosses,
} from '../../src/wire/control-frames.js';
import { MAX_FRAME_BYTES } from '../../src/wire/frame-limits.js';

const bytesOf = (frame: FrameContent): number =>
  toBinary(WorkResponseSchema, create(WorkResponseSchema, { frameId: 1n, frame })).length;

const taskId = 'x'.repeat(128);
const noticeOf = (summary: string, evidenceRefs: readonly string[]): CancelNotice => ({
  taskId,
  generation: 2_147_483_647,
  epoch: Number.MAX_SAFE_INTEGER,
  cancellationToken: 'y'.repeat(32),
  reason: { code: 'run.cancelled.operator', summary, evidenceRefs },
  graceMs: 315_360_000_000,
});

describe('a list of cancels', () => {
  it.each([
    ['with long reasons in three-byte letters', noticeOf('漢'.repeat(341), Array<string>(32).fill('漢'.repeat(682)))],
    ['with short reasons', noticeOf('why', [])],
    ['without reasons', { ...noticeOf('', []), reason: null }],
  ])('%s is cut into frames that fit, none left out', (_, notice) => {
    const notices = Array.from({ length: 10_000 }, () => notice);
    const lists = splitCancels(notices);
    expect(lists.flat()).toHaveLength(notices.length);
    for (const list of lists) expect(bytesOf(cancelsFrame(list))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
  });
});

it('a list of lost leases is cut into frames that fit', () => {
  const loss: LeaseLoss = { taskId, generation: 2_147_483_647, epoch: Number.MAX_SAFE_INTEGER, cause: 'superseded' };
  const lists = splitLosses(Array.from({ length: 10_000 }, () => loss));
  expect(lists.flat()).toHaveLength(10_000);
  for (const list of lists) expect(bytesOf(leasesLostFrame(list))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
});
