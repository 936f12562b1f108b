// The lines of the memory store: in order whatever comes and goes, and no dearer for being long.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryLines } from '../../src/store/memory/memory-lines.js';
import { MemoryPermits } from '../../src/store/memory/memory-permits.js';
import type { PermitRow } from '../../src/store/permit-rules.js';

const ROUTE = 1;

it('keep who stands in them in the order of their places, then of their admission', () => {
  const moves = fc.array(fc.record({ task: fc.nat(9), readyOrder: fc.nat(3), leaves: fc.boolean() }));
  fc.assert(
    fc.property(moves, (made) => {
      const lines = new MemoryLines();
      const model = new Map<number, PermitRow>();
      for (const { task, readyOrder, leaves } of made) {
        const before = model.get(task);
        if (before !== undefined) lines.remove(task, before);
        model.delete(task);
        if (leaves) continue;
        const row: PermitRow = { name: 'k', route: ROUTE, state: 'waiting', readyOrder };
        lines.add(task, row);
        model.set(task, row);
      }
      const expected = [...model]
        .map(([task, { readyOrder }]) => ({ task, readyOrder }))
        .sort((left, right) => left.readyOrder - right.readyOrder || left.task - right.task);
      expect(lines.all('waiting')).toEqual(expected);
      expect([lines.first('waiting', ROUTE), lines.last('waiting', ROUTE)]).toEqual([
        expected[0] ?? null,
        expected.at(-1) ?? null,
      ]);
      expect(expected.map((place) => lines.ahead('waiting', ROUTE, place))).toEqual(expected.map((_, at) => at));
      expect(lines.counts('waiting')).toEqual(expected.length === 0 ? [] : [[ROUTE, expected.length]]);
      expect(lines.isAnybody('waiting')).toBe(expected.length > 0);
    }),
  );
});

/** Where every write looked at the whole line, this took minutes. */
it('take in and let go of twenty thousand waiters of one key in no time', { timeout: 10_000 }, () => {
  const tasks = Array.from({ length: 20_000 }, (_, at) => at + 1);
  const ready = new Set<number>();
  const permits = new MemoryPermits(
    Number,
    () => ROUTE,
    (task, order) => {
      if (order === null) ready.delete(task);
      else ready.add(task);
    },
  );
  const align = (task: number, stance: 'queued' | 'running' | 'none') =>
    permits.write({
      kind: 'aligned',
      taskId: String(task),
      readyOrder: stance === 'queued' ? task : null,
      wish: { needs: [{ name: 'k', limit: 1 }], stance, claims: false },
    });
  for (const task of tasks) align(task, 'queued');
  for (const task of tasks) {
    expect([...ready]).toEqual([task]);
    align(task, 'running');
    ready.delete(task);
    align(task, 'none');
  }
  expect(permits.states(null, 9)).toEqual([]);
});
