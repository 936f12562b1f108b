// A store under load has nothing to be found: submissions, claims, failures, retries, cancels, families, waiters and purges
// go on while it is verified from beginning to end, again and again.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ReeveClient, connect } from '../../src/sdk/client.js';
import { createWorker } from '../../src/sdk/worker.js';
import { loadConfig } from '../../src/server/load-config.js';
import { type RunningServer, startServer } from '../../src/server/start-server.js';
import { ReeveClient as RawClient, admin } from '../server/reeve-client.js';
import { freshKey } from '../server/server-fixture.js';

const LANES = 24;
const ROUNDS = 3;
const LIVES_PER_ROUND = 150;

const folder = mkdtempSync(join(tmpdir(), 'reeve-busy-'));
let server: RunningServer;
let reeve: ReeveClient;
let raw: RawClient;

beforeAll(async () => {
  const store = `sqlite:${join(folder, 'reeve.db')}`;
  server = await startServer({ ...loadConfig({ env: {} }), listen: '127.0.0.1:0', store, logLevel: 'silent' });
  reeve = connect(server.address);
  raw = new RawClient(server.address);
});
afterAll(async () => {
  await reeve.close();
  raw.close();
  await server.stop(0);
  rmSync(folder, { recursive: true, force: true });
});

it('has no findings, whatever happens to it meanwhile', { timeout: 60_000 }, async () => {
  const worker = createWorker({
    address: server.address,
    name: 'busy',
    slots: 16,
    queues: ['work'],
    signals: [],
    handlers: {
      agent: async (claim, { output, progress, checkpoint }) => {
        await output({ page: 1 });
        await progress(0.5, 'half');
        await checkpoint({ at: 1 });
        if (claim.attempt === 1 && claim.args['fails'] === true) throw new Error('once');
        return { ok: true };
      },
    },
  });
  await worker.start();
  let lives = 0;
  let producing = true;
  let wanted: { readonly count: number; readonly reached: () => void } | null = null;
  const lived = (): void => {
    lives += 1;
    if (wanted !== null && lives >= wanted.count) wanted.reached();
  };
  const lane = async (number: number): Promise<void> => {
    for (let n = 0; producing; n++) {
      const key = `busy-${String(number)}-${String(n)}`;
      const retry = { initialMs: 1, maximumMs: 1 };
      const { task } = await reeve.submit({ kind: 'agent', key, queue: 'work', args: { fails: n % 3 === 0 }, retry });
      if (n % 4 === 1) {
        const parent = { taskId: task.id, attachment: 'detached' as const };
        await reeve.submit({ kind: 'agent', key: `${key}-child`, queue: 'work', args: {}, parent });
      }
      if (n % 4 === 2) {
        const dependsOn = [{ taskId: task.id, condition: 'terminal' as const }];
        await reeve.submit({ kind: 'agent', key: `${key}-waiter`, queue: 'work', args: {}, dependsOn });
      }
      if (n % 4 === 3) await family(key);
      await reeve.cancel(task.id).catch(() => undefined);
      if (n % 8 === 5) await purged();
      lived();
    }
  };
  /** A parent that nobody serves, with children, and its end. */
  const family = async (key: string): Promise<void> => {
    const { task } = await reeve.submitUnary({ kind: 'agent', key: `${key}-parent`, queue: 'unserved', args: {} });
    const parent = { taskId: task.id, generationId: task.generation?.id ?? '', attachment: 'attached' as const };
    for (let child = 0; child < 3; child++) {
      await reeve.submit({ kind: 'agent', key: `${key}-c${String(child)}`, args: {}, parent });
    }
    await reeve.cancel(task.id);
  };
  /** Of what has ended by now. */
  const purged = (): Promise<unknown> =>
    raw.unary(admin.purge, { idempotencyKey: freshKey('purge'), olderThan: { seconds: 0n, nanos: 0 }, maxTasks: 8 });
  const lanes = Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
  let [tasks, tombstones] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.race([lanes, new Promise<void>((reached) => (wanted = { count: lives + LIVES_PER_ROUND, reached }))]);
    for await (const page of reeve.admin.verify({ pageSize: 50 })) {
      expect(page.findings).toEqual([]);
      tasks += page.tasks;
      tombstones += page.tombstones;
    }
  }
  producing = false;
  await lanes;
  await worker.stop();
  expect(tasks).toBeGreaterThan(ROUNDS * LIVES_PER_ROUND);
  expect(tombstones).toBeGreaterThan(0);
  for await (const page of reeve.admin.verify()) expect(page.findings).toEqual([]);
});
