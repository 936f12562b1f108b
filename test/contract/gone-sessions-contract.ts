// Sessions that are gone: what is known of their end, listing them, and forgetting them in bounded steps.

import { describe, expect, it } from 'vitest';
import { MAX_TASKS_NAMED_AT_END, type SessionEnd, type SessionRow } from '../../src/store/commit-plan.js';
import { NOW, claimed, completed, endOf, planOf, sessionRow, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed } from './store-under-test.js';

const ids = (rows: readonly SessionRow[]) => rows.map(({ sessionId }) => sessionId);
const NEVER = Number.MAX_SAFE_INTEGER;

export function goneSessionsContract(store: StoreSource): void {
  const open = (session: SessionRow) => commit(store(), planOf({ sessions: [{ kind: 'open', session }] }));
  const finish = (sessionId: string, end: SessionEnd = endOf(), attachment = 1) =>
    commit(store(), planOf({ sessions: [{ kind: 'end', sessionId, attachment, end }] }));
  const gone = async (sessionId: string, forgetAt: number): Promise<void> => {
    await open(sessionRow(sessionId));
    await finish(sessionId, endOf(NOW, { forgetAt }));
  };
  const forget = async (now: number, most = NEVER): Promise<void> => {
    while (await store().forgetSessions(now, most));
  };
  const left = async () => ids(await store().goneSessions(null, 1_000));

  describe('the end', () => {
    it('keeps when, why, and whether it was draining', async () => {
      await open(sessionRow('a'));
      await open(sessionRow('b', { state: 'draining', expiresAt: 100 }));
      await finish('a');
      const end = endOf(101, { cause: 'expired' });
      await commit(store(), planOf({ sessions: [{ kind: 'expire', sessionId: 'b', end }] }));
      const nothing = { held: 0, taskIds: [] };
      expect((await store().loadSession('a'))?.ended).toEqual({ ...endOf(), drained: false, ...nothing });
      expect((await store().loadSession('b'))?.ended).toEqual({ ...end, drained: true, ...nothing });
    });

    it('keeps what it held at that moment, whatever becomes of that', async () => {
      await open(sessionRow('a'));
      const tasks = await committed(store(), submitted(), submitted(), submitted());
      const held = tasks.slice(0, 2).map((record) => claimed(record, 'a'));
      await committed(store(), ...held, ...tasks.slice(2).map((record) => claimed(record, 'b')));
      await finish('a');
      await committed(store(), ...held.map(({ record }) => completed(record)));
      const taskIds = tasks.slice(0, 2).map(({ admission }) => admission.taskId);
      expect((await store().loadSession('a'))?.ended).toMatchObject({ held: 2, taskIds });
      expect((await store().goneSessions(null, 1))[0]?.ended).toMatchObject({ held: 2, taskIds });
    });

    it('counts every lease and names the first of the tasks', async () => {
      await open(sessionRow('a'));
      const tasks = await committed(store(), ...Array.from({ length: MAX_TASKS_NAMED_AT_END + 3 }, () => submitted()));
      await committed(store(), ...tasks.map((record) => claimed(record, 'a')));
      await finish('a');
      const taskIds = tasks.slice(0, MAX_TASKS_NAMED_AT_END).map(({ admission }) => admission.taskId);
      expect((await store().loadSession('a'))?.ended).toMatchObject({ held: tasks.length, taskIds });
    });
  });

  it('lists those that are gone and no others, page by page', async () => {
    for (const id of ['c', 'a', 'b', 'd']) await gone(id, NOW);
    await open(sessionRow('aa'));
    await open(sessionRow('z', { state: 'draining' }));
    expect(ids(await store().goneSessions(null, 3))).toEqual(['a', 'b', 'c']);
    expect(ids(await store().goneSessions('c', 3))).toEqual(['d']);
    expect(await store().goneSessions('d', 3)).toEqual([]);
    expect((await store().goneSessions(null, 1))[0]).toEqual(await store().loadSession('a'));
  });

  describe('forgetting', () => {
    it('takes those whose time has come, and no others', async () => {
      await gone('early', NOW - 1);
      await gone('now', NOW);
      await gone('later', NOW + 1);
      await open(sessionRow('live', { expiresAt: 1 }));
      await open(sessionRow('draining', { state: 'draining', expiresAt: 1 }));
      await forget(NOW);
      expect(await left()).toEqual(['later']);
      expect(await store().loadSession('now')).toBeNull();
      expect(await store().loadSession('live')).not.toBeNull();
      expect(await store().loadSession('draining')).not.toBeNull();
      await forget(NOW + 1);
      expect(await left()).toEqual([]);
    });

    it('leaves a session that still holds a lease, and goes past it', async () => {
      const [record] = await committed(store(), submitted());
      if (record === undefined) throw new Error('one was made');
      await open(sessionRow('holds'));
      const held = claimed(record, 'holds');
      await committed(store(), held);
      await finish('holds', endOf(NOW, { forgetAt: NOW - 5 }));
      await gone('free', NOW - 1);
      await forget(NOW);
      expect(await left()).toEqual(['holds']);
      await forget(NOW, 0);
      expect(await left()).toEqual(['holds']);
      await committed(store(), completed(held.record));
      await forget(NOW);
      expect(await left()).toEqual([]);
    });

    it('keeps no more than so many, whatever their time', async () => {
      for (const [at, id] of ['e', 'd', 'c', 'b', 'a'].entries()) await gone(id, NOW + 1_000 + at);
      await forget(NOW, 5);
      expect(await left()).toHaveLength(5);
      await forget(NOW, 2);
      expect(await left()).toEqual(['a', 'b']);
      await forget(NOW, 0);
      expect(await left()).toEqual([]);
    });

    it('comes to its end over many steps', async () => {
      const many = Array.from({ length: 2_500 }, (_, at) => `s${String(at)}`);
      for (const plans of [many.slice(0, 1_000), many.slice(1_000, 2_000), many.slice(2_000)]) {
        await commit(store(), ...plans.map((id) => planOf({ sessions: [{ kind: 'open', session: sessionRow(id) }] })));
        await commit(
          store(),
          ...plans.map((sessionId) =>
            planOf({ sessions: [{ kind: 'end', sessionId, attachment: 1, end: endOf(NOW, { forgetAt: NOW }) }] }),
          ),
        );
      }
      await forget(NOW);
      expect(await left()).toEqual([]);
      expect(await store().forgetSessions(NOW, NEVER)).toBe(false);
    });

    it('leaves a session that nobody can attach, renew or act for, and an id that is free', async () => {
      await gone('a', NOW);
      await forget(NOW);
      const refused = [{ kind: 'conflict', subject: 'session', id: 'a' }];
      const renew = { kind: 'renew', sessionId: 'a', attachment: 1, expiresAt: NOW + 1 } as const;
      expect(await commit(store(), planOf({ sessions: [renew] }))).toEqual(refused);
      const terms = { ttlMs: 1_000, lingerMs: null, workerName: 'w', helloJson: '{}' };
      const attach = { kind: 'attach', sessionId: 'a', from: 1, expiresAt: NOW + 1, ...terms } as const;
      expect(await commit(store(), planOf({ sessions: [attach] }))).toEqual(refused);
      expect(
        await commit(store(), planOf({ sessionReads: [{ sessionId: 'a', attachment: 1, needs: 'not_gone' }] })),
      ).toEqual(refused);
      await open(sessionRow('a'));
      expect(await store().loadSession('a')).toEqual(sessionRow('a'));
    });
  });
}
