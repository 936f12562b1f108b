// Families in the store: edges are opened and closed once, counts are sums, what a plan presumes of them is checked in
// its own transaction, and what is still to be told outlives everything.

import { expect, it } from 'vitest';
import type { CommitPlan, PlanVerdict } from '../../src/store/commit-plan.js';
import type { LinkWrite, Propagation } from '../../src/store/family-rows.js';
import { cancelled, joined, planOf, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed, kindsOf, writtenAt } from './store-under-test.js';

const admitted = (parentId: string, childId: string, live = true): LinkWrite => ({
  kind: 'child_admitted',
  parentId,
  childId,
  live,
});
const ended = (parentId: string, childId: string): LinkWrite => ({ kind: 'child_ended', parentId, childId });
const opened = (upstreamId: string, waiterId: string): LinkWrite => ({
  kind: 'edge_opened',
  upstreamId,
  generation: 1,
  waiterId,
  condition: 'terminal',
});
const closed = (upstreamId: string, waiterId: string): LinkWrite => ({
  kind: 'edge_closed',
  upstreamId,
  generation: 1,
  waiterId,
});
const left = (waiterId: string, any: boolean): LinkWrite => ({ kind: 'edges_left', waiterId, any });
const linked = (...links: readonly LinkWrite[]): CommitPlan => planOf({ links });

export function familyContract(store: StoreSource): void {
  const tasks = async (count: number): Promise<string[]> => {
    const steps = Array.from({ length: count }, () => submitted());
    await committed(store(), ...steps);
    return steps.map(({ record }) => record.admission.taskId);
  };
  const countsOf = async (...taskIds: readonly string[]) => store().familyCounts(taskIds);
  const conflict = (id: string): PlanVerdict => ({ kind: 'conflict', subject: 'family', id });

  it('counts live children by addition, each begun and ended once', async () => {
    const [parent = '', one = '', two = '', three = ''] = await tasks(4);
    await commit(store(), linked(admitted(parent, one)), linked(admitted(parent, two)));
    await commit(store(), linked(admitted(parent, three, false)));
    expect(await countsOf(parent, one)).toEqual([
      { liveChildren: 2, unsatisfied: 0 },
      { liveChildren: 0, unsatisfied: 0 },
    ]);
    const verdicts = await commit(store(), linked(ended(parent, one)), linked(ended(parent, one)));
    expect(verdicts[1]).toEqual(conflict(one));
    expect(kindsOf(await commit(store(), linked(ended(parent, three))))).toEqual(['conflict']);
    expect((await store().liveChildren(parent, 0, 10)).map(({ taskId }) => taskId)).toEqual([two]);
    const revived: LinkWrite = { kind: 'child_revived', parentId: parent, childId: one };
    expect(kindsOf(await commit(store(), linked(revived), linked(revived)))).toEqual(['committed', 'conflict']);
    expect(await countsOf(parent)).toEqual([{ liveChildren: 2, unsatisfied: 0 }]);
  });

  it('pages live children in admission order', async () => {
    const [parent = '', ...children] = await tasks(8);
    await commit(store(), ...children.toReversed().map((child) => linked(admitted(parent, child))));
    const first = await store().liveChildren(parent, 0, 3);
    const rest = await store().liveChildren(parent, first[2]?.order ?? 0, 10);
    expect([...first, ...rest].map(({ taskId }) => taskId)).toEqual(children);
  });

  it.each(['in one batch', 'in two'])('lets a parent and its new child not both pass, %s', async (how) => {
    const [parent = '', child = ''] = await tasks(2);
    const begin = linked(admitted(parent, child));
    const guard = linked({ kind: 'no_live_children', parentId: parent });
    const both = how === 'in one batch' ? await commit(store(), begin, guard) : null;
    const verdicts = both ?? [...(await commit(store(), begin)), ...(await commit(store(), guard))];
    expect(verdicts[1]).toEqual(conflict(parent));
    expect(kindsOf(await commit(store(), linked(ended(parent, child)), guard))).toEqual(['committed', 'committed']);
  });

  it.each(['in one batch', 'in two'])(
    'counts edges down by addition; one of two finds nothing left, %s',
    async (how) => {
      const [one = '', two = '', waiter = ''] = await tasks(3);
      await commit(store(), linked(opened(one, waiter), opened(two, waiter)));
      expect(await store().waitersOf(one, 1, 0, 10)).toMatchObject([
        { taskId: waiter, condition: 'terminal', unsatisfied: 2 },
      ]);
      expect(await store().waitersOf(one, 2, 0, 10)).toEqual([]);
      // Both saw two edges open, and each thinks that the other's is left.
      const plans = [one, two].map((upstream) => linked(closed(upstream, waiter), left(waiter, true)));
      const [first, second] = plans as [CommitPlan, CommitPlan];
      const together = how === 'in one batch' ? await commit(store(), first, second) : null;
      const verdicts = together ?? [...(await commit(store(), first)), ...(await commit(store(), second))];
      expect(verdicts).toEqual([writtenAt(), conflict(waiter)]);
      expect(await countsOf(waiter)).toEqual([{ liveChildren: 0, unsatisfied: 1 }]);
      const again = linked(closed(two, waiter), left(waiter, false));
      expect(kindsOf(await commit(store(), again, again))).toEqual(['committed', 'conflict']);
      expect(await countsOf(waiter)).toEqual([{ liveChildren: 0, unsatisfied: 0 }]);
    },
  );

  it('drops all edges of a waiter, and only its own', async () => {
    const [one = '', two = '', waiter = '', other = ''] = await tasks(4);
    await commit(store(), linked(opened(one, waiter), opened(two, waiter), opened(two, other)));
    await commit(store(), linked({ kind: 'edges_dropped', waiterId: waiter }));
    expect(await countsOf(waiter, other)).toMatchObject([{ unsatisfied: 0 }, { unsatisfied: 1 }]);
    expect((await store().waitersOf(two, 1, 0, 10)).map(({ taskId }) => taskId)).toEqual([other]);
  });

  it('writes nothing of a plan that is mistaken, its record neither', async () => {
    const [parent = '', child = ''] = await tasks(2);
    const task = submitted();
    const plan = joined(task.plan, linked(admitted(parent, child), ended(parent, child)));
    expect(await commit(store(), plan)).toEqual([conflict(child)]);
    expect(await countsOf(parent)).toEqual([{ liveChildren: 0, unsatisfied: 0 }]);
    expect(await store().loadTasks([task.record.admission.taskId])).toEqual([null]);
  });

  it('knows links of a task that the same plan admits', async () => {
    const [parent = ''] = await tasks(1);
    const task = submitted();
    const { taskId } = task.record.admission;
    await committed(store(), {
      ...task,
      plan: joined(task.plan, linked(admitted(parent, taskId), opened(parent, taskId))),
    });
    expect(await countsOf(parent, taskId)).toEqual([
      { liveChildren: 1, unsatisfied: 0 },
      { liveChildren: 0, unsatisfied: 1 },
    ]);
  });

  it('keeps what is to be told until it is, and a later fact in its place', async () => {
    const task = submitted();
    await committed(store(), task);
    const { taskId } = task.record.admission;
    const first: Propagation = { taskId, generation: 1, outcome: 'cancel_requested', eventNumber: 2 };
    const second: Propagation = { ...first, outcome: 'cancelled', eventNumber: 3 };
    const step = cancelled(task.record);
    await committed(store(), { ...step, plan: joined(step.plan, linked({ kind: 'propagation', row: first })) });
    expect(await store().propagations(null, 10)).toMatchObject([first]);
    await commit(store(), linked({ kind: 'propagation', row: second }));
    expect(await store().propagations(null, 10)).toMatchObject([second]);
    expect(await commit(store(), linked({ kind: 'propagated', row: first }))).toEqual([conflict(taskId)]);
    expect(kindsOf(await commit(store(), linked({ kind: 'propagated', row: second })))).toEqual(['committed']);
    expect(await store().propagations(null, 10)).toEqual([]);
  });

  it('lists the children of a task, attached or not, both ways', async () => {
    const parent = submitted();
    const parentId = parent.record.admission.taskId;
    await committed(store(), parent, submitted());
    const children = [true, false, true].map((attached) => {
      const child = submitted({ parent: { taskId: parentId, generationId: 'g', attached } });
      const { taskId } = child.record.admission;
      return { ...child, plan: joined(child.plan, linked(admitted(parentId, taskId, attached))) };
    });
    await committed(store(), ...children, submitted());
    const ids = children.map(({ record }) => record.admission.taskId);
    const filter = {
      namespace: null,
      queue: null,
      statuses: null,
      actionKinds: null,
      labels: {},
      withArgs: false,
      parentTaskId: parentId,
    };
    for (const descending of [false, true]) {
      const page = await store().listTasks({ ...filter, descending, after: null, limit: 2, withArgs: false });
      const rest = await store().listTasks({ ...filter, descending, after: page.next, limit: 10, withArgs: false });
      const listed = [...page.tasks, ...rest.tasks].map(({ taskId }) => taskId);
      expect(listed).toEqual(descending ? ids.toReversed() : ids);
    }
  });
}
