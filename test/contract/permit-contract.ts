// Permits in the store: who passes, in which order, in whose transaction; a claim is refused where one is full, and what a
// plan that was dropped would have taken is not taken.

import { expect, it } from 'vitest';
import { judge } from '../../src/kernel/decide.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { PlanVerdict } from '../../src/store/commit-plan.js';
import type { PermitWrite } from '../../src/store/permit-rows.js';
import {
  NOW,
  OPERATOR,
  type Step,
  type TaskShape,
  cancelled,
  changed,
  claimed,
  completed,
  joined,
  planOf,
  submitted,
} from './sample-plans.js';
import { type StoreSource, commit, committed, committedOne, kindsOf, recordOf } from './store-under-test.js';

const KEY = 'key\ndefault\nk';
const TWO = 'key\ndefault\ntwo';
const GPU = 'serialized\ngpu';
const LINK: unknown = [expect.any(String)];
const ROUTE = 'default\nmain\nagent\nhost\n';
const GPU_ROUTE = 'default\nmain\nagent\nhost\ngpu';
const OTHER_ROUTE = 'default\nother\nagent\nhost\n';
const RESTING = { queued: false, settled: true, aside: false };
const LINED = { ...RESTING, queued: true };

const keyed = (more: TaskShape = {}): Step => submitted({ concurrencyKey: 'k', ...more });
const idOf = ({ record }: Step): string => record.admission.taskId;
const intended = (record: TaskRecord, intent: Intent): Step => changed(record, (draft) => judge(draft, intent));
const suspended = (record: TaskRecord): Step => intended(record, { kind: 'suspend', lease: null, cause: OPERATOR });
const lost = (record: TaskRecord): Step =>
  intended(record, { kind: 'session_lost', sessionId: record.lease?.sessionId ?? '', cause: OPERATOR });
const resumed = (record: TaskRecord): Step => {
  const generation = { newGenerationId: null, spareGenerationId: `${record.admission.taskId}-next` };
  return intended(record, { kind: 'resume', ...generation, inputJson: null, cause: OPERATOR });
};

/** Ids that the verdicts say came to be ready, by plan. */
function readyOf(verdicts: readonly PlanVerdict[]): readonly (readonly string[])[] {
  return verdicts.map((verdict) =>
    (verdict.kind === 'committed' ? (verdict.ready ?? []) : []).map((one) => one.taskId),
  );
}

function unsettledOf(verdicts: readonly PlanVerdict[]): readonly string[] {
  return verdicts.flatMap((verdict) => (verdict.kind === 'committed' ? (verdict.unsettled ?? []) : []));
}

export function permitContract(store: StoreSource): void {
  const admit = async (...steps: readonly Step[]): Promise<string[]> => {
    await committed(store(), ...steps);
    return steps.map(idOf);
  };
  const run = (...steps: readonly Step[]) => commit(store(), ...steps.map(({ plan }) => plan));
  const readyNow = async (route = ROUTE): Promise<string[]> =>
    (await store().readyTasks(route, null, 100)).map(({ taskId }) => taskId);
  const waitOf = async (taskId: string): Promise<string | null> => (await store().permitWait(taskId))?.name ?? null;
  const conflict = (id: string): PlanVerdict => ({ kind: 'conflict', subject: 'permit', id });

  it('lets the first of a key pass, tells so, and the others wait', async () => {
    const [one, two] = [keyed(), keyed()];
    const verdicts = await run(one, two);
    expect(verdicts).toEqual([
      {
        kind: 'committed',
        firstSequences: [1],
        links: LINK,
        ready: [{ taskId: idOf(one), routeKey: ROUTE, readyOrder: NOW }],
        rooms: [{ name: KEY, room: 1 }],
      },
      { kind: 'committed', firstSequences: [2], links: LINK },
    ]);
    expect(await readyNow()).toEqual([idOf(one)]);
    expect(await store().permitWait(idOf(one))).toBeNull();
    expect(await store().permitWait(idOf(two))).toEqual({
      name: KEY,
      limit: 1,
      running: 0,
      holders: [],
      ahead: 1,
      aheadIsAtLeast: false,
    });
  });

  it('has no permits of tasks that need none, and says nothing of them', async () => {
    const plain = submitted();
    expect(await run(plain, claimed(plain.record))).toEqual([
      { kind: 'committed', firstSequences: [1], links: LINK },
      { kind: 'committed', firstSequences: [2], links: LINK },
    ]);
    expect(await store().permits(null, 10)).toEqual([]);
  });

  it('keeps keys of namespaces apart, and knows what comes after a name', async () => {
    await admit(keyed(), keyed({ namespace: 'other' }), keyed({ concurrencyKey: 'two' }));
    const names = [KEY, TWO, 'key\nother\nk'];
    expect((await store().permits(null, 10)).map(({ name }) => name)).toEqual(names);
    expect(await store().permits(KEY, 1)).toEqual([{ name: TWO, limit: 2, running: 0, ...LINED }]);
  });

  it.each(['in one batch', 'in two'])('lets the next in line pass when the holder is through, %s', async (how) => {
    const [one, two, three] = [keyed(), keyed({ at: NOW + 2 }), keyed({ at: NOW + 1 })];
    await admit(one, two, three);
    const claim = claimed(one.record);
    const end = completed(claim.record);
    const verdicts = how === 'in one batch' ? await run(claim, end) : [...(await run(claim)), ...(await run(end))];
    expect(readyOf(verdicts)).toEqual([[], [idOf(three)]]);
    expect(await readyNow()).toEqual([idOf(three)]);
    expect(readyOf(await run(cancelled(three.record)))).toEqual([[idOf(two)]]);
    expect(readyOf(await run(cancelled(two.record)))).toEqual([[]]);
    expect(await store().permits(null, 10)).toEqual([]);
  });

  it('refuses a claim where as many run as may, and lets it pass in the batch that ends the holder', async () => {
    const [one, two] = [keyed(), keyed()];
    await admit(one, two);
    const second = claimed(two.record);
    const fresh = keyed();
    expect(
      await run({ plan: joined(fresh.plan, claimed(fresh.record).plan), record: fresh.record }).catch(String),
    ).toMatch(/writes a task twice/);
    expect(kindsOf(await run(claimed(one.record), second))).toEqual(['committed', 'conflict']);
    expect(await run(second)).toEqual([conflict(KEY)]);
    expect(await run(fresh, claimed(fresh.record))).toMatchObject([{ kind: 'committed' }, conflict(KEY)]);
    expect(await recordOf(store(), idOf(two))).toEqual(two.record);
    const running = await recordOf(store(), idOf(one));
    if (running === null) throw new Error('it is gone');
    expect(await run(completed(running), second)).toMatchObject([
      { ready: [{ taskId: idOf(two) }] },
      { kind: 'committed' },
    ]);
  });

  it('lets two run where the limit is two, never three', async () => {
    const tasks = Array.from({ length: 4 }, () => keyed({ concurrencyKey: 'two' }));
    const ids = await admit(...tasks);
    expect(await readyNow()).toEqual(ids.slice(0, 2));
    const claims = tasks.map(({ record }) => claimed(record));
    expect(kindsOf(await run(...claims))).toEqual(['committed', 'committed', 'conflict', 'conflict']);
    expect(await store().permits(null, 10)).toEqual([{ name: TWO, limit: 2, running: 2, ...LINED }]);
    const [first] = claims;
    if (first === undefined) throw new Error('four were made');
    expect(readyOf(await run(completed(first.record)))).toEqual([[ids[2]]]);
  });

  it('lets a claim by name take a waiter out of its line, and one that was let pass waits again', async () => {
    const [one, two] = [keyed(), keyed()];
    await admit(one, two);
    const second = await committedOne(store(), claimed(two.record));
    expect(await readyNow()).toEqual([]);
    expect(await store().permitWait(idOf(one))).toMatchObject({ running: 1, holders: [idOf(two)], ahead: 0 });
    expect(readyOf(await run(completed(second)))).toEqual([[idOf(one)]]);
  });

  it('keeps nobody waiting behind another queue, and takes the surplus back when one of them is claimed', async () => {
    const [one, two, there, behind] = [keyed(), keyed(), keyed({ queue: 'other' }), keyed({ queue: 'other' })];
    const verdicts = await run(one, two, there, behind);
    expect(readyOf(verdicts)).toEqual([[idOf(one)], [], [idOf(there)], []]);
    expect([await readyNow(), await readyNow(OTHER_ROUTE)]).toEqual([[idOf(one)], [idOf(there)]]);
    const claim = await committedOne(store(), claimed(there.record));
    expect([await readyNow(), await readyNow(OTHER_ROUTE)]).toEqual([[], []]);
    expect(await store().permitWait(idOf(one))).toMatchObject({ holders: [idOf(there)], ahead: 0 });
    expect(await store().permitWait(idOf(behind))).toMatchObject({ holders: [idOf(there)], ahead: 0 });
    expect(await run(claimed(one.record))).toEqual([conflict(KEY)]);
    expect(readyOf(await run(completed(claim)))).toEqual([[idOf(one), idOf(behind)]]);
  });

  it('goes through the lines of several permits, and is ready behind the last', async () => {
    const both = (): Step => keyed({ capabilities: ['gpu'] });
    const [gpu, one, two, key] = [submitted({ capabilities: ['gpu'] }), keyed(), both(), keyed()];
    await admit(gpu, one, two, key);
    expect([await readyNow(GPU_ROUTE), await readyNow()]).toEqual([[idOf(gpu)], [idOf(one)]]);
    // Its key lets the first of its own route pass; the capability has one before it.
    expect(await store().permitWait(idOf(two))).toMatchObject({ name: GPU, ahead: 1, holders: [] });
    expect(await waitOf(idOf(key))).toBe(KEY);
    const work = await committedOne(store(), claimed(gpu.record));
    expect(await store().permitWait(idOf(two))).toMatchObject({ name: GPU, ahead: 0, holders: [idOf(gpu)] });
    const other = await committedOne(store(), claimed(one.record));
    expect(await store().permitWait(idOf(two))).toMatchObject({ name: KEY, ahead: 0, holders: [idOf(one)] });
    // Nobody stands before the capability whom a key keeps from it.
    const last = submitted({ capabilities: ['gpu'] });
    await admit(last);
    expect(readyOf(await run(completed(work)))).toEqual([[idOf(last)]]);
    expect(readyOf(await run(completed(other)))).toEqual([[idOf(two), idOf(key)]]);
    expect(await readyNow(GPU_ROUTE)).toEqual([idOf(two)]);
    expect(await run(...[last, key, two].map(({ record }) => cancelled(record)))).toHaveLength(3);
    expect(await store().permits(null, 10)).toEqual([]);
  });

  it('leaves the lines behind a permit that it is put back from', async () => {
    const [both, gpu] = [keyed({ capabilities: ['gpu'] }), submitted({ capabilities: ['gpu'], at: NOW + 1 })];
    await admit(both, gpu);
    expect([await readyNow(GPU_ROUTE), await waitOf(idOf(gpu))]).toEqual([[idOf(both)], GPU]);
    const other = keyed();
    await admit(other);
    expect(readyOf(await run(claimed(other.record)))).toEqual([[idOf(gpu)]]);
    expect(await readyNow(GPU_ROUTE)).toEqual([idOf(gpu)]);
    expect(await waitOf(idOf(both))).toBe(KEY);
  });

  it('puts whoever only queues behind a more urgent one, never one that runs', async () => {
    const [calm, urgent, other] = [keyed(), keyed({ priority: 2 }), keyed({ priority: 3 })];
    await admit(calm);
    expect(readyOf(await run(urgent))).toEqual([[idOf(urgent)]]);
    expect(await readyNow()).toEqual([idOf(urgent)]);
    const claim = await committedOne(store(), claimed(urgent.record));
    expect(await run(claimed(calm.record))).toEqual([conflict(KEY)]);
    expect(readyOf(await run(other))).toEqual([[]]);
    expect(await readyNow()).toEqual([]);
    // What lost its owner is in the queue again, and there a more urgent one goes before it.
    expect(readyOf(await run(lost(claim)))).toEqual([[idOf(other)]]);
    expect(await store().permitWait(idOf(urgent))).toMatchObject({ ahead: 1, holders: [] });
  });

  it('has a task that lost its owner in its old place, and none that is suspended', async () => {
    const [one, two] = [keyed(), keyed({ at: NOW + 1 })];
    await admit(one, two);
    const claim = await committedOne(store(), claimed(one.record));
    const back = lost(claim);
    expect(readyOf(await run(back))).toEqual([[idOf(one)]]);
    const held = suspended(back.record);
    expect(readyOf(await run(held))).toEqual([[idOf(two)]]);
    const again = resumed(held.record);
    expect(readyOf(await run(again))).toEqual([[idOf(one)]]);
    expect(await waitOf(idOf(two))).toBe(KEY);
  });

  it('gives nothing to a task whose start is delayed', async () => {
    const [delayed, now] = [keyed({ notBeforeAt: NOW + 1_000 }), keyed()];
    await admit(delayed);
    expect(await store().permits(null, 10)).toEqual([]);
    expect(readyOf(await run(now))).toEqual([[idOf(now)]]);
  });

  it('moves a waiter by its priority, and a task that waits leaves its line with its end', async () => {
    const [one, two, three] = [keyed(), keyed(), keyed()];
    await admit(one, two, three);
    await committedOne(store(), claimed(one.record));
    const fields = ['priority'] as const;
    const values = { ...three.record.policy, priority: 50 };
    const first = intended(three.record, { kind: 'update_policy', fields, values, cause: OPERATOR });
    expect(readyOf(await run(first))).toEqual([[]]);
    expect(await store().permitWait(idOf(two))).toMatchObject({ ahead: 1 });
    expect(await store().permitWait(idOf(three))).toMatchObject({ ahead: 0 });
    await run(cancelled(first.record));
    expect(await store().permitWait(idOf(two))).toMatchObject({ ahead: 0 });
    expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 1, running: 1, ...LINED }]);
  });

  it('takes nothing for a plan that is dropped', async () => {
    const taken = keyed({ key: 'taken' });
    await admit(taken);
    const running = await committedOne(store(), claimed(taken.record));
    const end = await committedOne(store(), completed(running));
    expect(end.status).toBe('completed');
    const task = keyed();
    const plan = joined(task.plan, submitted({ key: 'taken' }).plan);
    expect(kindsOf(await run({ plan, record: task.record }))).toEqual(['duplicate']);
    expect(await store().permits(null, 10)).toEqual([]);
    const stale = claimed(taken.record);
    expect(kindsOf(await run(stale))).toEqual(['conflict']);
    expect(await store().permits(null, 10)).toEqual([]);
  });

  describeConfiguration();

  function describeConfiguration(): void {
    const changedTo = (...permits: readonly PermitWrite[]) => commit(store(), planOf({ permits }));
    const limited = (limit: number, most: number, name = KEY): PermitWrite => ({ kind: 'limited', name, limit, most });

    it('lets more pass when its limit was raised, so many at a step, and says that there are more', async () => {
      const ids = await admit(...Array.from({ length: 6 }, () => keyed()));
      const first = await changedTo(limited(5, 3));
      expect([readyOf(first), unsettledOf(first)]).toEqual([[ids.slice(1, 4)], [KEY]]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 5, running: 0, ...LINED, settled: false }]);
      const second = await changedTo(limited(5, 3));
      expect([readyOf(second), unsettledOf(second)]).toEqual([[[ids[4]]], []]);
      expect(readyOf(await changedTo(limited(5, 3), limited(9, 9, 'key\ndefault\nnobody')))).toEqual([[]]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 5, running: 0, ...LINED }]);
    });

    it('throws out nobody who runs when its limit was lowered, and lets nobody begin until there is room', async () => {
      const tasks = Array.from({ length: 4 }, () => keyed({ concurrencyKey: 'two' }));
      const ids = await admit(...tasks);
      const claims = tasks.slice(0, 2).map(({ record }) => claimed(record));
      await committed(store(), ...claims);
      expect(readyOf(await changedTo(limited(3, 9, TWO)))).toEqual([[ids[2]]]);
      expect(readyOf(await changedTo(limited(1, 9, TWO)))).toEqual([[]]);
      expect(await readyNow()).toEqual([]);
      expect(await store().permits(null, 10)).toEqual([{ name: TWO, limit: 1, running: 2, ...LINED }]);
      expect(readyOf(await run(...claims.map(({ record }) => completed(record))))).toEqual([[], [ids[2]]]);
    });

    it('takes those who passed back, so many at a step, when its limit was lowered', async () => {
      const ids = await admit(...Array.from({ length: 6 }, () => keyed()), keyed({ queue: 'other' }));
      await changedTo(limited(6, 99));
      expect(await readyNow()).toEqual(ids.slice(0, 6));
      expect(unsettledOf(await changedTo(limited(1, 3)))).toEqual([KEY]);
      expect(await readyNow()).toEqual(ids.slice(0, 3));
      expect(unsettledOf(await changedTo(limited(1, 3)))).toEqual([]);
      expect([await readyNow(), await readyNow(OTHER_ROUTE)]).toEqual([ids.slice(0, 1), ids.slice(6)]);
    });

    it('dissolves one that nobody needs any more, so many tasks at a step', async () => {
      const gpu = (): Step => submitted({ capabilities: ['gpu'] });
      const ids = await admit(gpu(), gpu(), gpu(), keyed({ capabilities: ['gpu'] }));
      const dissolved = { kind: 'dissolved', name: GPU, most: 2 } as const;
      expect(readyOf(await changedTo(dissolved))).toEqual([[ids[1], ids[2]]]);
      expect(readyOf(await changedTo(dissolved))).toEqual([[ids[3]]]);
      expect((await store().permits(null, 10)).map(({ name }) => name)).toEqual([KEY]);
      expect(await readyNow('default\nmain\nagent\nhost\ngpu')).toEqual(ids);
    });

    it('puts a task that came to need another one into line for it, behind its key', async () => {
      const [gpu, first, second] = [submitted({ capabilities: ['gpu'] }), keyed(), keyed()];
      await admit(gpu, first, second);
      const needs = [KEY, GPU].map((name) => ({ name, limit: 1 }));
      const wish = { needs, stance: 'queued', claims: false } as const;
      const aligned = { kind: 'aligned', taskId: idOf(first), readyOrder: NOW, wish } as const;
      // Of its own route nobody is before it.
      expect(readyOf(await changedTo(aligned))).toEqual([[idOf(first)]]);
      await committedOne(store(), claimed(gpu.record));
      expect(await readyNow()).toEqual([]);
      expect([await waitOf(idOf(first)), await waitOf(idOf(second))]).toEqual([GPU, KEY]);
    });

    it('takes a damaged one out of its line, so that the next comes to its turn, until it is recalled or written', async () => {
      const [one, two, three] = [keyed(), keyed(), keyed()];
      const ids = await admit(one, two, three);
      const aside = (taskId: string): PermitWrite => ({ kind: 'aside', taskId });
      expect(readyOf(await changedTo(aside(idOf(one)), aside('nobody')))).toEqual([[idOf(two)]]);
      expect(await readyNow()).toEqual([idOf(two)]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 1, running: 0, ...LINED, aside: true }]);
      expect(await store().permitWait(idOf(one))).toBeNull();
      await changedTo(aside(idOf(two)));
      expect(await readyNow()).toEqual([ids[2]]);
      const recalled: PermitWrite = { kind: 'recalled', name: KEY, most: 9 };
      expect(readyOf(await changedTo(recalled))).toEqual([[idOf(one)]]);
      expect(await readyNow()).toEqual([idOf(one)]);
      await changedTo(aside(idOf(one)));
      expect(readyOf(await run(suspended(one.record)))).toEqual([[]]);
      const claim = await committedOne(store(), claimed(two.record));
      expect(readyOf(await changedTo(aside(idOf(two))))).toEqual([[]]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 1, running: 1, ...LINED }]);
      expect(readyOf(await run(completed(claim)))).toEqual([[idOf(three)]]);
      const plain = submitted();
      await admit(plain);
      await changedTo(aside(idOf(plain)));
      expect(await readyNow()).toContain(idOf(plain));
    });

    it('aligns a task that came to need one: who runs has it beyond the limit, who queues waits', async () => {
      const [one, two] = [submitted(), submitted()];
      await admit(one, two);
      await committedOne(store(), claimed(one.record));
      const needs = [{ name: GPU, limit: 1 }];
      const alignedAs = (step: Step, stance: 'queued' | 'running', taskId = idOf(step)): PermitWrite => {
        const readyOrder = stance === 'queued' ? NOW : null;
        return { kind: 'aligned', taskId, readyOrder, wish: { needs, stance, claims: false } };
      };
      expect(readyOf(await changedTo(alignedAs(one, 'running')))).toEqual([[]]);
      expect(readyOf(await changedTo(alignedAs(two, 'queued'), alignedAs(two, 'queued')))).toEqual([[]]);
      expect(await readyNow()).toEqual([]);
      expect(await store().permitWait(idOf(two))).toMatchObject({ name: GPU, running: 1, holders: [idOf(one)] });
      await changedTo(alignedAs(two, 'running'), alignedAs(two, 'running', 'nobody'));
      expect(await store().permits(null, 10)).toEqual([{ name: GPU, limit: 1, running: 2, ...RESTING }]);
    });
  }
}
