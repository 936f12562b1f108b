// What listeners and readers inside the process are told: every commit, after it, in its order, frozen; and nothing that
// they do or fail to do changes anything.

import { afterEach, describe, expect, it } from 'vitest';
import { MAX_UNREAD_COMMITS } from '../../src/embed/commits.js';
import type { Commit } from '../../src/embed/event.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { probeStore } from '../support/store-probe.js';
import { turns } from '../support/turns.js';
import { type Embedded, all, openEmbeddedFixture, refusalOf } from './embedded-fixture.js';

const open: Embedded[] = [];
afterEach(async () => {
  for (const { reeve } of open.splice(0)) await reeve.close();
});

async function embedded(...given: Parameters<typeof openEmbeddedFixture>): Promise<Embedded> {
  const one = await openEmbeddedFixture(...given);
  open.push(one);
  return one;
}

const typesOf = (commits: readonly Commit[]) => commits.flatMap(({ events }) => events.map(({ type }) => type));

describe('a listener', () => {
  it('is told of every commit, in its order, with the task as it was left', async () => {
    const { reeve } = await embedded();
    const told: Commit[] = [];
    const unsubscribe = reeve.subscribe((commit) => void told.push(commit));
    const { task } = await reeve.submit({ kind: 'agent', key: 'k' });
    await reeve.transition(task.id, { type: 'suspend' });
    await reeve.cancel(task.id);
    expect(told.map((commit) => commit.task.status)).toEqual(['queued', 'suspended', 'cancelled']);
    const events = told.flatMap((commit) => commit.events);
    expect(events).toEqual(await all(reeve.events(task.id)));
    expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    unsubscribe();
    await reeve.submit({ kind: 'agent', key: 'other' });
    expect(told).toHaveLength(3);
  });

  it('is told after the commit and never before', async () => {
    const probe = probeStore(openMemoryStore());
    const { reeve } = await embedded({}, probe.store);
    const told: Commit[] = [];
    reeve.subscribe((commit) => void told.push(commit));
    const waiting = probe.hold();
    const submitted = reeve.submit({ kind: 'agent', key: 'k' });
    await waiting;
    await turns();
    expect(told).toEqual([]);
    probe.release();
    await submitted;
    expect(typesOf(told)).toEqual(['task.submitted']);
  });

  it('that throws changes nothing, and keeps nobody else from being told', async () => {
    const { reeve, defects } = await embedded();
    const told: Commit[] = [];
    const bad = new Error('a listener of no use');
    reeve.subscribe(() => {
      throw bad;
    });
    reeve.subscribe(async () => {
      await Promise.resolve();
      throw bad;
    });
    reeve.subscribe((commit) => void told.push(commit));
    const { task, outcome } = await reeve.submit({ kind: 'agent', key: 'k' });
    expect(outcome).toBe('CREATED');
    await reeve.cancel(task.id);
    await turns();
    expect(typesOf(told)).toEqual(['task.submitted', 'task.cancel.requested', 'task.cancelled']);
    expect(defects).toEqual([bad, bad, bad, bad]);
    expect((await reeve.get(task.id)).status).toBe('cancelled');
  });

  it('cannot change what it is told', async () => {
    const { reeve } = await embedded();
    const tried: unknown[] = [];
    reeve.subscribe((commit) => {
      const [event] = commit.events;
      for (const change of [
        () => Object.assign(commit, { task: null }),
        () => Object.assign(commit.task, { status: 'completed' }),
        () => Object.assign(commit.task.policy.retry, { maxAttempts: 99 }),
        () => (commit.events as unknown[]).pop(),
        () => Object.assign(event ?? {}, { type: 'task.completed' }),
        () => Object.assign(event?.payload ?? {}, { state: 'completed' }),
      ]) {
        expect(change).toThrow(TypeError);
        tried.push(change);
      }
    });
    const { task } = await reeve.submit({ kind: 'agent', key: 'k' });
    expect(tried).toHaveLength(6);
    expect(await reeve.get(task.id)).toMatchObject({ status: 'queued', policy: { retry: { maxAttempts: 3 } } });
  });

  it('may ask for more while it is told', async () => {
    const { reeve } = await embedded();
    const cancelled = new Promise((resolve) => {
      reeve.subscribe((commit) => {
        if (commit.task.status === 'queued') void reeve.cancel(commit.task.id);
        if (commit.task.status === 'cancelled') resolve(commit.task.id);
      });
    });
    const { task } = await reeve.submit({ kind: 'agent', key: 'k' });
    expect(await cancelled).toBe(task.id);
  });
});

describe('a reader', () => {
  it('gets what was committed since it asked, also before it first reads, and ends with the authority', async () => {
    const { reeve } = await openEmbeddedFixture();
    const { task } = await reeve.submit({ kind: 'agent', key: 'before' });
    const commits = reeve.commits();
    const ofOne = reeve.commits({ taskId: task.id });
    await reeve.submit({ kind: 'agent', key: 'after' });
    await reeve.cancel(task.id);
    const read = all(commits);
    await reeve.close();
    expect(typesOf(await read)).toEqual(['task.submitted', 'task.cancel.requested', 'task.cancelled']);
    expect(typesOf(await all(ofOne))).toEqual(['task.cancel.requested', 'task.cancelled']);
  });

  it('waits for the next, and ends by its signal or by leaving the loop', async () => {
    const { reeve } = await embedded();
    const ending = new AbortController();
    const read = all(reeve.commits({ signal: ending.signal }));
    const loop = (async () => {
      for await (const commit of reeve.commits()) return commit.task.key;
      return null;
    })();
    await turns();
    await reeve.submit({ kind: 'agent', key: 'one' });
    expect(await loop).toBe('one');
    ending.abort();
    expect(typesOf(await read)).toEqual(['task.submitted']);
    expect(await all(reeve.commits({ signal: ending.signal }))).toEqual([]);
  });

  it('that does not read is cut with SLOW_READER after what it was kept for, and nobody else is', async () => {
    const { reeve } = await embedded();
    const slow = reeve.commits();
    let told = 0;
    reeve.subscribe(() => void (told += 1));
    const count = MAX_UNREAD_COMMITS + 500;
    const submissions = Array.from({ length: count }, (_, n) => ({ kind: 'agent', key: `k-${String(n)}` }));
    await reeve.submitAll(submissions);
    expect(told).toBe(count);
    let read = 0;
    const reading = (async () => {
      for await (const commit of slow) read += commit.events.length;
    })();
    expect(await refusalOf(reading)).toMatchObject({ reason: 'SLOW_READER' });
    expect(read).toBe(MAX_UNREAD_COMMITS);
  });
});
