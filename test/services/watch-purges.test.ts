// What a watcher in the middle of its replay is told while tasks end and are purged around it: every task whole, or none
// of it, or CURSOR_EXPIRED. Never a part of one, and never silently less than what is kept.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TaskRecord } from '../../src/kernel/record.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { sqliteEngine } from '../contract/engines.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';
import { purge, range, shortPages, watch } from './watch-rig.js';

describe('purges between the pages of a replay', () => {
  it.each(['memory', 'sqlite'])(
    'leave no hole (%s)',
    async (kind) => {
      // One store for all runs, a namespace for each.
      const inner = kind === 'sqlite' ? await sqliteEngine.open() : openMemoryStore();
      let runs = 0;
      let expired = 0;
      let whole = 0;
      const step = fc.constantFrom('admit', 'end', 'purge', 'sweep', 'nothing');
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 4, maxLength: 24 }),
        fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 4 }),
        async (before, between, pageEvents) => {
          const namespace = `run${String(runs++)}`;
          const pauses = [...between];
          let world: World | null = null;
          let live: string[] = [];
          let over: TaskRecord[] = [];
          let made = 0;
          const act = async (what: string): Promise<void> => {
            if (world === null) return;
            if (what === 'admit')
              live = [...live, (await world.admit(`k${String(made++)}`, { namespace })).admission.taskId];
            const [first] = live;
            if (what === 'end' && first !== undefined) {
              live = live.slice(1);
              await world.cancel(first);
              over = [...over, await world.stored(first)];
            }
            const [oldest] = over;
            if (what === 'purge' && oldest !== undefined) {
              over = over.slice(1);
              await purge(world, oldest);
            }
            if (what === 'sweep') await inner.sweepPurged();
          };
          const real = shortPages(inner, pageEvents, async () => {
            for (const what of pauses.shift() ?? []) await act(what);
          });
          world = await World.open({ real, dispatcher: null, timers: 'stopped', propagation: 'stopped' });
          for (const what of before) await act(what);
          const watching = watch(world, { namespace });
          await watching.caughtUp(inner);
          const { ended: how } = watching.call;
          if (how !== null) {
            expect(how).toMatchObject({ reason: 'CURSOR_EXPIRED' });
            expired += 1;
          } else {
            whole += 1;
            await turns();
            watching.call.take(watching.listener);
            const told = watching.told();
            for (const numbers of told.values()) expect(numbers).toEqual(range(1, numbers.length));
            for (const taskId of [...live, ...over.map(({ admission }) => admission.taskId)]) {
              const record = await world.stored(taskId);
              expect(told.get(taskId)).toEqual(range(1, record.lastEvent));
            }
            for (const taskId of told.keys()) {
              const [task] = await inner.loadTasks([taskId]);
              if (task?.kind === 'purged') expect(told.get(taskId)).toHaveLength(task.tombstone.lastEvent);
            }
          }
          expect(world.errors).toEqual([]);
          expect(world.defects).toEqual([]);
          watching.listener.closed();
          world.kill();
        },
      );
      await fc.assert(property, { numRuns: kind === 'sqlite' ? 60 : 300 });
      await inner.close();
      // Both ends are met, or the property proves nothing.
      expect(expired).toBeGreaterThan(0);
      expect(whole).toBeGreaterThan(0);
    },
    60_000,
  );
});
