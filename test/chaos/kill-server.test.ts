/**
 * Promise C1: kill −9 of the server under load, again and again; whatever was acknowledged is in the store, once.
 * `npm run chaos:kill` does it fifty times; the short form is part of the tests.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applicationHash } from '../../src/kernel/admission/application-hash.js';
import { connect } from '../../src/sdk/client.js';
import { createWorker, type Settled } from '../../src/sdk/worker.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { ServerProcess } from './server-process.js';
import { storedTruth } from './stored-truth.js';

const KILLS = Number(process.env['REEVE_CHAOS_KILLS'] ?? 5);
const LANES = 64;
/** Acknowledgements of each kind between two kills, so that every kill hits a server under load. */
const SUBMITS_PER_LIFE = 300;
const SETTLED_PER_LIFE = 150;

/** Of the args that were submitted; the audit has found that those that are stored hash to it. */
function hashOf(index: number): string {
  return applicationHash({
    actionKind: 'agent',
    argsJson: `{"index":${index}}`,
    executionTarget: 'host',
    requiredCapabilities: [],
    libraryRef: null,
    libraryContentHash: null,
  });
}

const folder = mkdtempSync(join(tmpdir(), 'reeve-chaos-'));
const storePath = join(folder, 'reeve.db');
const server = new ServerProcess(storePath);

beforeAll(() => server.start());
afterAll(async () => {
  await server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Counts acknowledgements and lets somebody wait for the next n. */
class Acknowledged<Item> {
  readonly items: Item[] = [];
  private goal: { readonly count: number; readonly resolve: () => void } | null = null;

  add(item: Item): void {
    this.items.push(item);
    if (this.goal !== null && this.items.length >= this.goal.count) this.goal.resolve();
  }

  more(count: number): Promise<void> {
    return new Promise((resolve) => (this.goal = { count: this.items.length + count, resolve }));
  }
}

it(`keeps every acknowledged call once through ${KILLS} kills`, { timeout: 60_000 + KILLS * 10_000 }, async () => {
  const submitted = new Acknowledged<{ readonly key: string; readonly taskId: string; readonly index: number }>();
  const settled = new Acknowledged<Settled>();
  const client = connect(server.address);
  const worker = createWorker({
    address: server.address,
    name: 'chaos',
    slots: 64,
    signals: [],
    handlers: { agent: async (claim) => ({ echoed: claim.args['index'] }) },
    onSettled: (settlement) => settled.add(settlement),
  });
  await worker.start();

  let producing = true;
  let next = 0;
  const lane = async (): Promise<void> => {
    while (producing) {
      const index = next++;
      const key = `chaos-${index}`;
      // Submitted until it is acknowledged: an unknown outcome is safe to retry with the same key.
      for (let acknowledged = false; !acknowledged && producing;) {
        try {
          const { task } = await client.submit({ kind: 'agent', key, args: { index } });
          submitted.add({ key, taskId: task.id, index });
          acknowledged = true;
        } catch {
          acknowledged = false;
        }
      }
    }
  };
  const lanes = Array.from({ length: LANES }, () => lane());

  for (let kill = 0; kill < KILLS; kill++) {
    await Promise.all([submitted.more(SUBMITS_PER_LIFE), settled.more(SETTLED_PER_LIFE)]);
    await server.kill('SIGKILL');
    await server.start();
  }
  await Promise.all([submitted.more(SUBMITS_PER_LIFE), settled.more(SETTLED_PER_LIFE)]);
  producing = false;
  await Promise.all(lanes);
  await worker.stop();
  await client.close();
  await server.kill('SIGTERM');

  const store = await openSqliteStore({ path: storePath });
  const lives = await storedTruth(store);
  await store.close();
  const idsByKey = new Map<string, string[]>();
  for (const [taskId, { record }] of lives) {
    const { idempotencyKey } = record.admission;
    idsByKey.set(idempotencyKey, [...(idsByKey.get(idempotencyKey) ?? []), taskId]);
  }
  for (const { key, taskId, index } of submitted.items) {
    expect(idsByKey.get(key)).toEqual([taskId]);
    expect(lives.get(taskId)?.record.admission.applicationHash).toBe(hashOf(index));
  }
  for (const { taskId, epoch, as } of settled.items) {
    const life = lives.get(taskId);
    const ends = life?.events.filter((event) => event.type === `task.${as}` && event.epoch === epoch);
    expect(ends?.length, `${taskId} was acknowledged as ${as} under epoch ${epoch}`).toBe(1);
  }
  expect(submitted.items.length).toBeGreaterThanOrEqual((KILLS + 1) * SUBMITS_PER_LIFE);
  expect(settled.items.length).toBeGreaterThanOrEqual((KILLS + 1) * SETTLED_PER_LIFE);
});
