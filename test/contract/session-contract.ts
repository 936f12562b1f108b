// Sessions: every guard of every write, with what it refuses.

import { describe, expect, it } from 'vitest';
import type { SessionRead, SessionRow, SessionWrite } from '../../src/store/commit-plan.js';
import { NOW, claimed, completed, endOf, joined, planOf, sessionRow, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed, committedOne, kindsOf } from './store-under-test.js';

type Situation = 'live' | 'draining' | 'gone' | 'attached again' | 'absent';

const ID = 's';
/** What a Hello asks for when it says what sessionRow says. */
const TERMS = { ttlMs: 30_000, lingerMs: null, workerName: 'worker-1' };
const REFUSED = [{ kind: 'conflict', subject: 'session', id: ID }];

export function sessionContract(store: StoreSource): void {
  const write = (sessionWrite: SessionWrite) => commit(store(), planOf({ sessions: [sessionWrite] }));
  const open = (session: SessionRow) => write({ kind: 'open', session });

  async function arrange(situation: Situation): Promise<void> {
    if (situation === 'absent') return;
    await open(sessionRow(ID));
    if (situation === 'draining') await write({ kind: 'drain', sessionId: ID, attachment: 1 });
    if (situation === 'gone') await write({ kind: 'end', sessionId: ID, attachment: 1, end: endOf() });
    if (situation === 'attached again') {
      await write({ kind: 'attach', sessionId: ID, from: 1, expiresAt: NOW + 60_000, ...TERMS, helloJson: '{}' });
    }
  }

  it('opens a session and reads it back', async () => {
    const session = sessionRow('s', { lingerMs: 0, workerName: 'wörker "1"', helloJson: '{"a":[1]}' });
    expect(kindsOf(await open(session))).toEqual(['committed']);
    expect(await store().loadSession('s')).toEqual(session);
    expect(await store().loadSession('other')).toBeNull();
  });

  const writes: Readonly<Record<string, SessionWrite>> = {
    open: { kind: 'open', session: sessionRow(ID) },
    attach: { kind: 'attach', sessionId: ID, from: 1, expiresAt: NOW + 90_000, ...TERMS, helloJson: '{"new":1}' },
    renew: { kind: 'renew', sessionId: ID, attachment: 1, expiresAt: NOW + 90_000 },
    linger: { kind: 'linger', sessionId: ID, attachment: 1, until: NOW + 1_000 },
    drain: { kind: 'drain', sessionId: ID, attachment: 1 },
    expire: { kind: 'expire', sessionId: ID, end: endOf(NOW + 30_001) },
    end: { kind: 'end', sessionId: ID, attachment: 1, end: endOf() },
  };
  const allowed: Readonly<Record<string, readonly Situation[]>> = {
    open: ['absent'],
    attach: ['live', 'draining'],
    renew: ['live', 'draining'],
    linger: ['live', 'draining'],
    drain: ['live'],
    expire: ['live', 'draining'],
    end: ['live', 'draining'],
  };
  const situations: readonly Situation[] = ['live', 'draining', 'gone', 'attached again', 'absent'];

  describe.each(Object.keys(writes))('%s', (kind) => {
    it.each(situations)('when the session is %s', async (situation) => {
      await arrange(situation);
      const before = await store().loadSession(ID);
      const sessionWrite = writes[kind];
      if (sessionWrite === undefined) throw new Error('no such write');
      const verdicts = await write(sessionWrite);
      if (allowed[kind]?.includes(situation) === true) {
        expect(kindsOf(verdicts)).toEqual(['committed']);
        expect(await store().loadSession(ID)).not.toEqual(before);
      } else {
        expect(verdicts).toEqual(REFUSED);
        expect(await store().loadSession(ID)).toEqual(before);
      }
    });
  });

  it('changes exactly what each write says', async () => {
    const row = sessionRow(ID);
    await open(row);
    await write({ kind: 'renew', sessionId: ID, attachment: 1, expiresAt: NOW + 40_000 });
    expect(await store().loadSession(ID)).toEqual({ ...row, expiresAt: NOW + 40_000 });
    await write({ kind: 'drain', sessionId: ID, attachment: 1 });
    expect(await store().loadSession(ID)).toEqual({ ...row, expiresAt: NOW + 40_000, state: 'draining' });
    await write({ kind: 'attach', sessionId: ID, from: 1, expiresAt: NOW + 50_000, ...TERMS, helloJson: '{"n":2}' });
    const attached = { ...row, expiresAt: NOW + 50_000, state: 'draining', attachment: 2, helloJson: '{"n":2}' };
    expect(await store().loadSession(ID)).toEqual(attached);
    await write({ kind: 'end', sessionId: ID, attachment: 2, end: endOf() });
    expect(await store().loadSession(ID)).toEqual({
      ...attached,
      state: 'gone',
      ended: { ...endOf(), drained: true, held: 0, taskIds: [] },
    });
  });

  it('takes over everything that a new Hello says, and lingers no longer than it would have lived', async () => {
    const row = sessionRow(ID);
    await open(row);
    const terms = { ttlMs: 5_000, lingerMs: 700, workerName: 'renamed', helloJson: '{"n":3}' };
    await write({ kind: 'attach', sessionId: ID, from: 1, expiresAt: NOW + 5_000, ...terms });
    const attached = { ...row, ...terms, expiresAt: NOW + 5_000, attachment: 2 };
    expect(await store().loadSession(ID)).toEqual(attached);
    await write({ kind: 'linger', sessionId: ID, attachment: 2, until: NOW + 9_000 });
    expect(await store().loadSession(ID)).toEqual(attached);
    await write({ kind: 'linger', sessionId: ID, attachment: 2, until: NOW + 700 });
    expect(await store().loadSession(ID)).toEqual({ ...attached, expiresAt: NOW + 700 });
  });

  it('expires strictly after the time, and only once', async () => {
    await open(sessionRow(ID, { expiresAt: 100 }));
    expect(await write({ kind: 'expire', sessionId: ID, end: endOf(100) })).toEqual(REFUSED);
    expect(kindsOf(await write({ kind: 'expire', sessionId: ID, end: endOf(101) }))).toEqual(['committed']);
    expect(await write({ kind: 'expire', sessionId: ID, end: endOf(102) })).toEqual(REFUSED);
  });

  it.each<[Situation, SessionRead['needs'], boolean]>([
    ['live', 'live', true],
    ['live', 'not_gone', true],
    ['draining', 'live', false],
    ['draining', 'not_gone', true],
    ['gone', 'live', false],
    ['gone', 'not_gone', false],
    ['attached again', 'live', false],
    ['attached again', 'not_gone', false],
    ['absent', 'not_gone', false],
  ])('checks a decision that read it: %s, needs %s', async (situation, needs, holds) => {
    await arrange(situation);
    const record = await committedOne(store(), submitted());
    const read = planOf({ sessionReads: [{ sessionId: ID, attachment: 1, needs }] });
    const update = await commit(store(), joined(claimed(record, ID).plan, read));
    const insert = await commit(store(), joined(submitted().plan, read));
    expect([...kindsOf(update), ...kindsOf(insert)]).toEqual(
      holds ? ['committed', 'committed'] : ['conflict', 'conflict'],
    );
  });

  it('sees a session write of an earlier plan in the same batch', async () => {
    await open(sessionRow(ID));
    const read = planOf({ sessionReads: [{ sessionId: ID, attachment: 1, needs: 'live' }] });
    const drain = planOf({ sessions: [{ kind: 'drain', sessionId: ID, attachment: 1 }] });
    const [before, after] = [submitted(), submitted()];
    const verdicts = await commit(store(), joined(before.plan, read), drain, joined(after.plan, read));
    expect(kindsOf(verdicts)).toEqual(['committed', 'committed', 'conflict']);
  });

  it('drops every session write of a plan of which one is refused', async () => {
    await open(sessionRow(ID));
    await open(sessionRow('t'));
    const renew = (sessionId: string, attachment: number): SessionWrite => ({
      kind: 'renew',
      sessionId,
      attachment,
      expiresAt: NOW + 99_000,
    });
    expect(await commit(store(), planOf({ sessions: [renew('t', 1), renew(ID, 7)] }))).toEqual(REFUSED);
    expect((await store().loadSession('t'))?.expiresAt).toBe(NOW + 30_000);
  });

  it('lists sessions that are not gone, earliest expiry first, or those that expired', async () => {
    await open(sessionRow('a', { expiresAt: 300 }));
    await open(sessionRow('b', { expiresAt: 100 }));
    await open(sessionRow('c', { expiresAt: 200 }));
    await write({ kind: 'drain', sessionId: 'c', attachment: 1 });
    await write({ kind: 'end', sessionId: 'a', attachment: 1, end: endOf() });
    await open(sessionRow('d', { expiresAt: 400 }));
    const ids = (rows: readonly SessionRow[]) => rows.map(({ sessionId }) => sessionId);
    expect(ids(await store().sessions(null, 10))).toEqual(['b', 'c', 'd']);
    expect(ids(await store().sessions(null, 2))).toEqual(['b', 'c']);
    expect(ids(await store().sessions(200, 10))).toEqual(['b']);
    expect(ids(await store().sessions(201, 10))).toEqual(['b', 'c']);
  });

  it('lists sessions that outlast a time by more than their TTL, the latest first', async () => {
    await open(sessionRow('a', { expiresAt: 1_000, ttlMs: 100 }));
    await open(sessionRow('b', { expiresAt: 1_500, ttlMs: 1_000 }));
    await open(sessionRow('c', { expiresAt: 1_400, ttlMs: 100 }));
    await open(sessionRow('d', { expiresAt: 1_400, ttlMs: 100 }));
    await write({ kind: 'drain', sessionId: 'c', attachment: 1 });
    await write({ kind: 'end', sessionId: 'd', attachment: 1, end: endOf() });
    const ahead = async (now: number, limit = 10) =>
      (await store().sessionsAhead(now, limit)).map(({ sessionId }) => sessionId);
    expect(await ahead(900)).toEqual(['c']);
    expect(await ahead(499)).toEqual(['b', 'c', 'a']);
    expect(await ahead(499, 2)).toEqual(['b', 'c']);
    expect(await ahead(1_300)).toEqual([]);
  });

  it('finds the tasks whose lease a session holds, page by page, and who holds any', async () => {
    const tasks = await committed(store(), submitted(), submitted(), submitted(), submitted());
    const held = tasks.slice(0, 3).map((record) => claimed(record, 'one'));
    await committed(store(), ...held, ...tasks.slice(3).map((record) => claimed(record, 'two')));
    const first = await store().tasksOfSession('one', 0, 2);
    expect(first.map(({ taskId }) => taskId)).toEqual(tasks.slice(0, 2).map(({ admission }) => admission.taskId));
    const rest = await store().tasksOfSession('one', first[1]?.order ?? 0, 2);
    expect(rest.map(({ taskId }) => taskId)).toEqual([tasks[2]?.admission.taskId]);
    expect([...(await store().leaseHolders())].sort()).toEqual(['one', 'two']);
    await committed(store(), ...held.map(({ record }) => completed(record)));
    expect(await store().tasksOfSession('one', 0, 10)).toEqual([]);
    expect(await store().leaseHolders()).toEqual(['two']);
  });
}
