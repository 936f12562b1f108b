// Histories that the kernel would never make, event by event: each is found for what it is.

import { describe, expect, it } from 'vitest';
import { Findings } from '../../src/audit/findings.js';
import { Lifecycle } from '../../src/audit/lifecycle.js';
import { Numbers } from '../../src/audit/numbers.js';
import { fold } from '../../src/kernel/fold.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { Admission } from '../../src/kernel/record.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

/** Submitted, claimed, accepted, started, progress; then a request, and its settlement by the worker. */
async function history(): Promise<{ readonly admission: Admission; readonly events: readonly TaskEvent[] }> {
  const world = await World.open();
  const worker = await openWorker(world);
  await world.admit('a', { taskId: 'a' });
  await world.settle();
  await worker.say('a', 'accepted', 'started', 'progress');
  await world.cancel('a');
  await worker.say('a', 'cancelled');
  return { admission: (await world.stored('a')).admission, events: await world.events('a') };
}

const { admission, events } = await history();

function found(list: readonly TaskEvent[], sequences = list.map((_, index) => index + 1)): string[] {
  const findings = new Findings('a');
  const checks = [new Numbers(findings), new Lifecycle(findings)];
  for (const [index, event] of list.entries()) {
    for (const check of checks) check.see(event, sequences[index] ?? 0);
  }
  return findings.list().map(({ invariant, eventNumber }) => `${invariant} ${String(eventNumber)}`);
}

function event(type: TaskEvent['type']): TaskEvent {
  const known = events.find((one) => one.type === type);
  if (known === undefined) throw new Error(`there is no ${type}`);
  return known;
}

/** Behind the others, numbered on. */
function behind(list: readonly TaskEvent[], ...more: readonly TaskEvent[]): TaskEvent[] {
  const facts = list.filter(({ revision }) => revision !== null).length;
  let revision = facts;
  return [
    ...list,
    ...more.map((one, index) => ({
      ...one,
      number: list.length + index + 1,
      revision: one.revision === null ? null : ++revision,
    })),
  ];
}

const upTo = (type: TaskEvent['type']): TaskEvent[] => events.slice(0, events.indexOf(event(type)) + 1);

describe('a history', () => {
  it('of the kernel is sound', () => {
    expect(events.map(({ type }) => type).at(-1)).toBe('task.cancelled');
    expect(found(events)).toEqual([]);
  });

  it('has ascending sequences', () => {
    const [first, second, ...rest] = events.map((_, index) => index + 1);
    expect(found(events, [second ?? 0, first ?? 0, ...rest])).toEqual(['history.sequences 2']);
  });

  it('has revisions for facts, one by one, and for nothing else', () => {
    const claimed = { ...event('reeve.task.claimed'), revision: 3 };
    expect(found([...events.slice(0, 1), claimed])).toEqual(['history.revisions 2']);
    const accepted = { ...event('task.accepted'), revision: 3 };
    expect(found([...events.slice(0, 2), accepted])).toEqual(['history.revisions 3']);
  });

  it('ends with the end of a generation', () => {
    expect(found(behind(events, { ...event('task.progress'), epoch: null, aep: null }))).toEqual([
      `history.terminal ${String(events.length + 1)}`,
    ]);
    expect(found(behind(events, { ...event('task.progress'), epoch: null, aep: null, generation: 2 }))).toEqual([
      `history.terminal ${String(events.length + 1)}`,
    ]);
  });

  it('claims with ever higher epochs', () => {
    const claimed = { ...event('reeve.task.claimed'), epoch: 0 };
    expect(found([...events.slice(0, 1), claimed])).toEqual(['history.epochs 2']);
  });

  it('claims nothing after a cancel request', () => {
    const claimed = { ...event('reeve.task.claimed'), epoch: 2, from: null, to: null };
    const list = behind(upTo('task.cancel.requested'), claimed);
    expect(found(list)).toEqual([`history.fence ${String(list.length)}`]);
  });

  it('settles every epoch once, and hears no other', () => {
    const early = { ...event('task.accepted'), epoch: 1 };
    expect(found(behind(events.slice(0, 1), early))).toEqual(['history.settlements 2']);
    const retry: TaskEvent = {
      ...event('task.cancelled'),
      type: 'reeve.task.retry_scheduled',
      data: { retryAt: 0, cause: 'failure', attemptGivenBack: false, ending: null },
      to: 'retry_wait',
      aep: null,
    };
    const list = behind(upTo('task.progress'), retry, { ...retry, epoch: null });
    expect(found(list)).toEqual([`history.edges ${String(list.length)}`, `history.settlements ${String(list.length)}`]);
  });

  it('changes its status by declared edges, each from where the last one led', () => {
    const from = { ...event('reeve.task.claimed'), from: 'suspended' as const };
    expect(found([...events.slice(0, 1), from])).toEqual(['history.edges 2']);
    const to = { ...event('reeve.task.claimed'), to: 'completed' as const };
    expect(found([...events.slice(0, 1), to])).toEqual(['history.edges 2']);
  });

  it('goes on from what was accepted, whatever was before', () => {
    const findings = new Findings('a');
    const checks = [new Numbers(findings), new Lifecycle(findings)];
    const record = fold(admission, upTo('task.progress'));
    if (record === null) throw new Error('no record');
    const last = event('task.progress');
    const accepted: TaskEvent = {
      ...last,
      type: 'reeve.task.repaired',
      data: { repair: 'accept_record', mended: [], redacted: null, accepted: record },
      number: 20,
      cause: causeOf('operator'),
    };
    for (const check of checks) check.restart(accepted, 100, record);
    for (const check of checks) check.see({ ...event('task.cancel.requested'), number: 21 }, 101);
    expect(findings.list()).toEqual([]);
    for (const check of checks) check.see({ ...event('reeve.task.claimed'), number: 22, revision: 4 }, 102);
    expect(findings.list().map(({ invariant }) => invariant)).toEqual([
      'history.edges',
      'history.fence',
      'history.epochs',
    ]);
  });
});
