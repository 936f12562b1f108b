// Permits of more lines than one plan settles: what is left over is told, and nobody is said to be ready in vain. And what a
// plan tells of those whom it puts back.

import { expect, it } from 'vitest';
import { routeKeyOf } from '../../src/kernel/placement.js';
import type { PlanVerdict } from '../../src/store/commit-plan.js';
import type { PermitWrite, PermitsMoved } from '../../src/store/permit-rows.js';
import { NOW, type Step, type TaskShape, claimed, completed, planOf, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed } from './store-under-test.js';

const KEY = 'key\ndefault\nk';
const GPU = 'serialized\ngpu';
const PAIR = 'serialized\npair';
/** Of a permit, lines that one plan settles. */
const LINES_PER_PLAN = 64;

const keyed = (more: TaskShape = {}): Step => submitted({ concurrencyKey: 'k', ...more });
const idOf = ({ record }: Step): string => record.admission.taskId;
const routeOf = (queue: string): string => `default\n${queue}\nagent\nhost\n`;
const idsOf = (tasks: readonly { readonly taskId: string }[] = []): string[] => tasks.map(({ taskId }) => taskId);

function told(verdicts: readonly PlanVerdict[]): Partial<PermitsMoved> {
  const [verdict] = verdicts;
  if (verdict?.kind !== 'committed') throw new Error(`not committed: ${JSON.stringify(verdict)}`);
  return verdict;
}

export function permitSurplusContract(store: StoreSource): void {
  const run = (...steps: readonly Step[]) => commit(store(), ...steps.map(({ plan }) => plan));
  const writing = async (...permits: readonly PermitWrite[]) => told(await commit(store(), planOf({ permits })));
  const admit = async (steps: readonly Step[]): Promise<readonly Step[]> => {
    await committed(store(), ...steps);
    return steps;
  };
  const inQueues = (count: number): Promise<readonly Step[]> =>
    admit(Array.from({ length: count }, (_, n) => keyed({ queue: `q${String(n)}` })));
  const isReady = async ({ record: { admission } }: Step): Promise<boolean> =>
    idsOf(await store().readyTasks(routeKeyOf(admission), null, 9)).includes(admission.taskId);
  const aligned = (taskId: string): PermitWrite => {
    const wish = { needs: [{ name: KEY, limit: 1 }], stance: 'queued', claims: false } as const;
    return { kind: 'aligned', taskId, readyOrder: NOW, wish };
  };

  it('tell of a claim whom it put back, and how many more may begin', async () => {
    const [first, second, third] = await inQueues(3);
    if (first === undefined || second === undefined || third === undefined) throw new Error('three were made');
    const unready = [second, third].map((step, at) => {
      return { taskId: idOf(step), routeKey: routeOf(`q${String(at + 1)}`), readyOrder: NOW };
    });
    const claim = claimed(first.record);
    const begun = told(await run(claim));
    expect(begun.unready?.toSorted((one, other) => (one.taskId < other.taskId ? -1 : 1))).toEqual(unready);
    expect(begun.rooms).toEqual([{ name: KEY, room: 0 }]);
    const end = told(await run(completed(claim.record)));
    expect([end.unready, end.rooms]).toEqual([undefined, [{ name: KEY, room: 1 }]]);
    // Nobody was ready who did not pass all that it needs.
    const both = keyed({ queue: 'q9', capabilities: ['gpu'] });
    const gpu = submitted({ queue: 'q9', capabilities: ['gpu'], at: NOW - 1 });
    await admit([gpu, both]);
    expect(idsOf(told(await run(claimed(second.record))).unready)).toEqual([idOf(third)]);
  });

  it('say of nobody that it is ready while there is no room, however often it is aligned', async () => {
    const steps = await inQueues(LINES_PER_PLAN + 4);
    const [first] = steps;
    if (first === undefined) throw new Error('they were made');
    const claim = told(await run(claimed(first.record)));
    expect([claim.unready?.length, claim.unsettled]).toEqual([LINES_PER_PLAN, [KEY]]);
    const back = new Set(idsOf(claim.unready));
    const left = steps.slice(1).filter((step) => !back.has(idOf(step)));
    expect(left).toHaveLength(3);
    const [loser] = left;
    if (loser === undefined) throw new Error('there are three');
    expect(await isReady(loser)).toBe(true);
    expect(await run(claimed(loser.record))).toEqual([{ kind: 'conflict', subject: 'permit', id: KEY }]);
    const again = await writing(aligned(idOf(loser)));
    expect([again.ready, idsOf(again.unready).toSorted()]).toEqual([undefined, left.map(idOf)]);
    expect(await isReady(loser)).toBe(false);
    expect(await writing(aligned(idOf(loser)))).not.toHaveProperty('ready');
    expect(await store().permits(null, 9)).toMatchObject([{ running: 1, settled: true }]);
  });

  it('tell that there is more to do when more were recalled than one plan lets pass', async () => {
    const more = 20;
    const tasks = await admit(Array.from({ length: LINES_PER_PLAN + more }, () => keyed()));
    await writing(...tasks.map((step): PermitWrite => ({ kind: 'aside', taskId: idOf(step) })));
    await writing({ kind: 'limited', name: KEY, limit: 100, most: 9 });
    const recalled = await writing({ kind: 'recalled', name: KEY, most: 256 });
    expect([recalled.ready?.length, recalled.unsettled]).toEqual([LINES_PER_PLAN, [KEY]]);
    const rest = await writing({ kind: 'limited', name: KEY, limit: 100, most: 256 });
    expect([rest.ready?.length, rest.unsettled]).toEqual([more, undefined]);
    expect(await store().permits(null, 9)).toMatchObject([{ settled: true, aside: false }]);
  });

  it('put whoever was set aside at one that is dissolved into the next line, or among the ready', async () => {
    const alone = submitted({ capabilities: ['gpu'] });
    await admit([alone]);
    await writing({ kind: 'aside', taskId: idOf(alone) });
    const dissolved = await writing({ kind: 'dissolved', name: GPU, most: 9 });
    expect(idsOf(dissolved.ready)).toEqual([idOf(alone)]);
    expect(await store().permits(null, 9)).toEqual([]);

    const other = keyed();
    await admit([other]);
    const needs = [GPU, PAIR].map((name) => ({ name, limit: 1 }));
    const wish = { needs, stance: 'queued', claims: false } as const;
    await writing({ kind: 'aligned', taskId: idOf(other), readyOrder: NOW, wish });
    const holder = submitted();
    await admit([holder]);
    const running = { needs: needs.slice(1), stance: 'running', claims: false } as const;
    await writing({ kind: 'aligned', taskId: idOf(holder), readyOrder: null, wish: running });
    await writing({ kind: 'aside', taskId: idOf(other) });
    await writing({ kind: 'dissolved', name: GPU, most: 9 });
    expect(await store().permitWait(idOf(other))).toMatchObject({ name: PAIR, holders: [idOf(holder)] });
  });
}
