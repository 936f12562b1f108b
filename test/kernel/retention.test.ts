// When a finished task may go, what stays of it, and whether its parent still counts on it.

import { describe, expect, it } from 'vitest';
import { applicationFieldHashes } from '../../src/kernel/admission/application-hash.js';
import { KEEP_FOR_EVER, MIN_KEPT_MS, purgeAt } from '../../src/kernel/retention.js';
import { isNeededByParent, taskPurged, tombstoneOf } from '../../src/kernel/tombstone.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { NOW, cancelled, resumed, submitted } from '../contract/sample-plans.js';

const DAY_MS = 86_400_000;

function ended(retentionMs?: number): TaskRecord {
  return cancelled(submitted(retentionMs === undefined ? {} : { retentionMs }).record).record;
}

describe('the moment from which a task may be purged', () => {
  const defaults = { ...KEEP_FOR_EVER, cancelled: 2 * DAY_MS, failed: DAY_MS };

  it('is its own retention after its end, or the default of how it ended', () => {
    expect(purgeAt(ended(DAY_MS), defaults)).toBe(NOW + DAY_MS);
    expect(purgeAt(ended(), defaults)).toBe(NOW + 2 * DAY_MS);
    expect(purgeAt({ ...ended(), status: 'failed' }, defaults)).toBe(NOW + DAY_MS);
    expect(purgeAt({ ...ended(), status: 'completed' }, defaults)).toBeNull();
    expect(purgeAt(ended(), KEEP_FOR_EVER)).toBeNull();
  });

  it('leaves time to read the result, however short the retention', () => {
    expect(purgeAt(ended(0), defaults)).toBe(NOW + MIN_KEPT_MS);
    expect(purgeAt(ended(MIN_KEPT_MS + 1), defaults)).toBe(NOW + MIN_KEPT_MS + 1);
  });

  it('does not come while the task lives, also not in a new generation', () => {
    expect(purgeAt(submitted({ retentionMs: 0 }).record, defaults)).toBeNull();
    expect(purgeAt(resumed(ended(0)).record, defaults)).toBeNull();
  });
});

describe('a tombstone', () => {
  it('names the task, how it ended and what it was, by hashes alone', () => {
    const record = ended();
    const { admission } = record;
    expect(tombstoneOf(record, NOW + 5)).toEqual({
      taskId: admission.taskId,
      namespace: 'default',
      idempotencyKey: admission.idempotencyKey,
      generation: 1,
      generationId: record.generationId,
      revision: 3,
      lastEvent: 3,
      status: 'cancelled',
      reasonCode: record.reason?.code ?? null,
      applicationHash: admission.applicationHash,
      fieldHashes: applicationFieldHashes(admission.application),
      finishedAt: NOW,
      purgedAt: NOW + 5,
    });
  });

  it('is not made of what lives', () => {
    expect(tombstoneOf(submitted().record, NOW)).toBeNull();
    expect(tombstoneOf(resumed(ended()).record, NOW)).toBeNull();
  });

  it('is what an intent is told of', () => {
    expect(taskPurged('t', { field: 'policy.parent.task_id' })).toMatchObject({
      reason: 'TASK_NOT_FOUND',
      metadata: { task_id: 't', purged: 'true', field: 'policy.parent.task_id' },
    });
  });
});

describe('a parent', () => {
  const parent = submitted().record;
  const link = { taskId: parent.admission.taskId, generationId: parent.generationId };
  const child = (attached: boolean, generationId = link.generationId): TaskRecord =>
    cancelled(submitted({ parent: { ...link, generationId, attached } }).record).record;

  it('counts on its attached children while exactly their generation of it lives', () => {
    expect(isNeededByParent(child(true), parent)).toBe(true);
    expect(isNeededByParent(child(true), cancelled(parent).record)).toBe(false);
    expect(isNeededByParent(child(true), resumed(cancelled(parent).record).record)).toBe(false);
    expect(isNeededByParent(child(false), parent)).toBe(false);
    expect(isNeededByParent(child(true), null)).toBe(false);
    expect(isNeededByParent(ended(), parent)).toBe(false);
  });
});
