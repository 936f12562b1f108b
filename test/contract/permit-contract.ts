// Permits in the store: who gets one, in which order, in whose transaction; a claim is refused without them, and what a
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
const GPU = 'capability\ngpu';
const LINK: unknown = [expect.any(String)];
const ROUTE = 'default\nmain\nagent\nhost\n';

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

  it('lets the first of a key be ready, tells so, and the others wait', async () => {
    const [one, two] = [keyed(), keyed()];
    const verdicts = await run(one, two);
    expect(verdicts).toEqual([
      {
        kind: 'committed',
        firstSequences: [1],
        links: LINK,
        ready: [{ taskId: idOf(one), routeKey: ROUTE, readyOrder: NOW }],
      },
      { kind: 'committed', firstSequences: [2], links: LINK },
    ]);
    expect(await readyNow()).toEqual([idOf(one)]);
    expect(await store().permitWait(idOf(one))).toBeNull();
    expect(await store().permitWait(idOf(two))).toEqual({
      name: KEY,
      limit: 1,
      held: 1,
      holders: [idOf(one)],
      ahead: 0,
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
    expect(await store().permits(KEY, 1)).toEqual([{ name: TWO, limit: 2, held: 1, waited: false }]);
  });

  it.each(['in one batch', 'in two'])('gives what the holder gives back to the next in line, %s', async (how) => {
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

  it('refuses a claim of a task that waits, and lets it pass in the batch that ends the holder', async () => {
    const [one, two] = [keyed(), keyed()];
    await admit(one, two);
    const second = claimed(two.record);
    expect(await run(second)).toEqual([conflict(KEY)]);
    const fresh = keyed();
    expect(
      await run({ plan: joined(fresh.plan, claimed(fresh.record).plan), record: fresh.record }).catch(String),
    ).toMatch(/writes a task twice/);
    expect(await run(fresh, claimed(fresh.record))).toMatchObject([{ kind: 'committed' }, conflict(KEY)]);
    expect(kindsOf(await run(claimed(one.record), second))).toEqual(['committed', 'conflict']);
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
    expect(await store().permits(null, 10)).toEqual([{ name: TWO, limit: 2, held: 2, waited: true }]);
    const [first] = claims;
    if (first === undefined) throw new Error('four were made');
    expect(readyOf(await run(completed(first.record)))).toEqual([[ids[2]]]);
  });

  it('takes several permits one after the other: who waits for the second keeps the first', async () => {
    const both = (): Step => keyed({ capabilities: ['gpu'] });
    const route = 'default\nmain\nagent\nhost\ngpu';
    const [gpu, one, two, key] = [submitted({ capabilities: ['gpu'] }), keyed(), both(), keyed()];
    await admit(gpu, one, two, key);
    expect(await readyNow(route)).toEqual([idOf(gpu)]);
    expect(await readyNow()).toEqual([idOf(one)]);
    expect(await waitOf(idOf(two))).toBe(GPU);
    // It gets the capability and stands in line for the key, at its own place there.
    expect(readyOf(await run(cancelled(gpu.record)))).toEqual([[]]);
    expect(await waitOf(idOf(two))).toBe(KEY);
    expect(await store().permitWait(idOf(key))).toMatchObject({ name: KEY, ahead: 1, holders: [idOf(one)] });
    const last = submitted({ capabilities: ['gpu'] });
    await admit(last);
    expect(await store().permitWait(idOf(last))).toMatchObject({ holders: [idOf(two)] });
    expect(readyOf(await run(cancelled(one.record)))).toEqual([[idOf(two)]]);
    // It gives back both, to one each.
    expect(readyOf(await run(cancelled(two.record)))).toEqual([[idOf(last), idOf(key)]]);
    expect(await run(cancelled(last.record), cancelled(key.record))).toHaveLength(2);
    expect(await store().permits(null, 10)).toEqual([]);
  });

  it('frees what was held behind a permit that is lost to another', async () => {
    const route = 'default\nmain\nagent\nhost\ngpu';
    const [both, key] = [keyed({ capabilities: ['gpu'] }), keyed({ at: NOW + 1 })];
    await admit(both, key);
    expect([await readyNow(route), await waitOf(idOf(key))]).toEqual([[idOf(both)], KEY]);
    const urgent = submitted({ capabilities: ['gpu'], priority: 1 });
    expect(readyOf(await run(urgent))).toEqual([[idOf(urgent), idOf(key)]]);
    expect(await readyNow(route)).toEqual([idOf(urgent)]);
    expect(await waitOf(idOf(both))).toBe(GPU);
    expect(readyOf(await run(cancelled(key.record), cancelled(urgent.record)))).toEqual([[], [idOf(both)]]);
  });

  it('puts a holder that only queues behind whoever is more urgent, never one that runs', async () => {
    const [calm, urgent, other] = [keyed(), keyed({ priority: 2 }), keyed({ priority: 3 })];
    await admit(calm);
    expect(readyOf(await run(urgent))).toEqual([[idOf(urgent)]]);
    expect(await readyNow()).toEqual([idOf(urgent)]);
    expect(await run(claimed(calm.record))).toEqual([conflict(KEY)]);
    const claim = await committedOne(store(), claimed(urgent.record));
    expect(readyOf(await run(other))).toEqual([[]]);
    expect(await readyNow()).toEqual([]);
    // What lost its owner is in the queue again, and there a more urgent one goes before it.
    expect(readyOf(await run(lost(claim)))).toEqual([[idOf(other)]]);
    expect(await store().permitWait(idOf(urgent))).toMatchObject({ ahead: 0, holders: [idOf(other)] });
  });

  it('keeps a permit through the loss of the owner, and gives it back at a suspension', async () => {
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
    expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 1, held: 1, waited: true }]);
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

    it('lets more have it when its limit was raised, so many at a step', async () => {
      const ids = await admit(...Array.from({ length: 6 }, () => keyed()));
      expect(readyOf(await changedTo(limited(5, 3)))).toEqual([ids.slice(1, 4)]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 5, held: 4, waited: true }]);
      expect(readyOf(await changedTo(limited(5, 3)))).toEqual([[ids[4]]]);
      expect(readyOf(await changedTo(limited(5, 3), limited(9, 9, 'key\ndefault\nnobody')))).toEqual([[]]);
      expect(await store().permits(null, 10)).toEqual([{ name: KEY, limit: 5, held: 5, waited: true }]);
    });

    it('throws nobody out when its limit was lowered, and gives it to nobody until there is room', async () => {
      const tasks = Array.from({ length: 4 }, () => keyed());
      const ids = await admit(...tasks);
      await changedTo(limited(3, 9));
      expect(readyOf(await changedTo(limited(1, 9)))).toEqual([[]]);
      expect(await readyNow()).toEqual(ids.slice(0, 3));
      const ends = tasks.slice(0, 3).map(({ record }) => cancelled(record));
      expect(readyOf(await run(...ends))).toEqual([[], [], [ids[3]]]);
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

    it('takes from a task that queues what it holds behind one that it came to need', async () => {
      const [gpu, first, second] = [submitted({ capabilities: ['gpu'] }), keyed(), keyed()];
      await admit(gpu, first, second);
      const needs = [GPU, KEY].map((name) => ({ name, limit: 1 }));
      const wish = { needs, stance: 'queued', claims: false } as const;
      const aligned = { kind: 'aligned', taskId: idOf(first), readyOrder: NOW, wish } as const;
      expect(readyOf(await changedTo(aligned))).toEqual([[idOf(second)]]);
      expect(await readyNow()).toEqual([idOf(second)]);
      expect(await waitOf(idOf(first))).toBe(GPU);
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
      expect(await store().permitWait(idOf(two))).toMatchObject({ name: GPU, held: 1, holders: [idOf(one)] });
      await changedTo(alignedAs(two, 'running'), alignedAs(two, 'running', 'nobody'));
      expect(await store().permits(null, 10)).toEqual([{ name: GPU, limit: 1, held: 2, waited: false }]);
    });
  }
}
