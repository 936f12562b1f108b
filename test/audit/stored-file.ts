// A SQLite file with a life of every sort in it, to be tampered with and audited: finished with outputs, running, waiting
// for a retry, queued with a timer, a family, a waiter, a second generation, one that was suspended, and one that is gone.

import Database from 'better-sqlite3';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { auditEntry } from '../../src/audit/entry-audit.js';
import type { Finding } from '../../src/audit/findings.js';
import { auditKeys, auditSessions } from '../../src/audit/lists.js';
import { auditPermits } from '../../src/audit/permits.js';
import { auditTally, beginTally, tallied } from '../../src/audit/tally.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { AuditedKeys, AuditedPermits, AuditedSessions, KeyName } from '../../src/store/audit-rows.js';
import { sealOf } from '../../src/store/record-seal.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { causeOf, type submission, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

export const SECRET_OUTPUT = '{"secret":"the output that must go"}';

export interface Audited {
  readonly findings: readonly Finding[];
  readonly tasks: number;
  readonly links: number;
}

export class StoredFile {
  private copies = 0;

  private constructor(
    private readonly folder: string,
    readonly now: number,
    readonly chainKey: Uint8Array | null,
  ) {}

  /** Made once for a test file and removed after it. */
  static async make(chainKey: Uint8Array | null = null): Promise<StoredFile> {
    const folder = mkdtempSync(join(tmpdir(), 'reeve-audit-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    const store = await openSqliteStore({ path: join(folder, 'original.db'), chainKey });
    const now = await fill(store);
    await store.close();
    return new StoredFile(folder, now, chainKey);
  }

  /** A copy of the file to work on. */
  copy(): string {
    this.copies += 1;
    const path = join(this.folder, `copy-${String(this.copies)}.db`);
    copyFileSync(join(this.folder, 'original.db'), path);
    return path;
  }

  tampered(...statements: readonly string[]): string {
    return this.tamperedBy((db) => {
      for (const statement of statements) {
        const { changes } = db.prepare(statement).run();
        if (changes === 0) throw new Error(`it changes nothing: ${statement}`);
      }
    });
  }

  tamperedBy(tamper: (db: Database.Database) => void): string {
    const path = this.copy();
    const db = new Database(path);
    tamper(db);
    db.close();
    return path;
  }

  open(path: string): Promise<TaskStore> {
    return openSqliteStore({ path, chainKey: this.chainKey });
  }

  async audit(path: string): Promise<Audited> {
    const store = await this.open(path);
    try {
      return await auditAll(store, this.now);
    } finally {
      await store.close();
    }
  }
}

/** Seals all records as they stand, as one does who forges them. */
export function reseal(db: Database.Database): void {
  const rows = db.prepare<[], [number, string, string]>('SELECT task_order, task_id, record FROM tasks').raw().all();
  const write = db.prepare<[number, number]>('UPDATE tasks SET seal = ? WHERE task_order = ?');
  for (const [order, taskId, record] of rows) write.run(sealOf(taskId, record), order);
}

/** Everything in a store, in pages of three tasks and of two keys, in one look each. */
export async function auditAll(store: TaskStore, now: number, quietSince = now): Promise<Audited> {
  const moment = { now, quietSince };
  const findings: Finding[] = [];
  let [tasks, links] = [0, 0];
  let tally = beginTally(await store.eventBounds());
  for (let after: number | null = 0; after !== null;) {
    const page = await store.auditTasks({ taskIds: null, after, limit: 3 });
    for (const entry of page.entries) {
      if (entry === null) throw new Error('a page of all tasks has none');
      const audit = await auditEntry(entry, store.auditHistory.bind(store), moment);
      findings.push(...audit.findings);
      tasks += entry.kind === 'task' ? 1 : 0;
      links += audit.links;
      tally = tallied(tally, entry, audit.lastSequence);
    }
    after = page.next;
  }
  findings.push(...auditTally(tally, await store.eventBounds()));
  for (let after: KeyName | null = null, more = true; more;) {
    const page: AuditedKeys = await store.auditKeys({ names: null, after, limit: 2 });
    findings.push(...auditKeys(page.keys));
    after = page.next;
    more = after !== null;
  }
  for (let after: string | null = null, more = true; more;) {
    const page: AuditedSessions = await store.auditSessions({ names: null, after, limit: 1 });
    findings.push(...auditSessions(page.sessions, moment));
    after = page.next;
    more = after !== null;
  }
  for (let after: string | null = null, more = true; more;) {
    const page: AuditedPermits = await store.auditPermits({ names: null, after, limit: 1 });
    findings.push(...auditPermits(page.permits));
    after = page.next;
    more = after !== null;
  }
  return { findings, tasks, links };
}

/** Resolves when an event of this type of this task was published; the dispatcher has heard of it by then. */
export function published(world: World, taskId: string, type: TaskEvent['type']): Promise<void> {
  return new Promise((resolve) => {
    const stop = world.authority.subscribe((commit) => {
      if (commit.taskId !== taskId || commit.events.every((event) => event.type !== type)) return;
      stop();
      resolve();
    });
  });
}

async function fill(real: TaskStore): Promise<number> {
  const world = await World.open({ real, seed: 7 });
  const worker = await openWorker(world, { slots: 10, ttlMs: 60_000, serves: subscription({ queues: ['work'] }) });
  const taken = async (taskId: string, policy: NonNullable<Parameters<typeof submission>[1]>['policy'] = {}) => {
    const claimed = published(world, taskId, 'reeve.task.claimed');
    await world.admit(`key of ${taskId}`, { taskId, queue: 'work', policy, args: `{"for":"${taskId}"}` });
    await claimed;
  };
  await taken('done');
  await worker.say('done', 'accepted', 'started');
  const output = { outputJson: SECRET_OUTPUT, binaryBase64: null, contentType: null, truncated: false };
  const other = { ...output, outputJson: '{"page":2}' };
  await worker.say('done', { kind: 'output', output }, { kind: 'output', output: other }, 'progress');
  await worker.say('done', { kind: 'completed', resultJson: '{"ok":true}', ending: null });
  await taken('running');
  await worker.say('running', 'accepted', 'started', { kind: 'checkpoint', checkpointJson: '{"at":1}' });
  await taken('retrying');
  await worker.say('retrying', 'accepted', 'started', 'failed');
  await taken('parent');
  await worker.say('parent', 'accepted', 'started');
  const parent = await world.stored('parent');
  const link = { taskId: 'parent', generationId: parent.generationId, attached: true };
  await world.admit('key of child', { taskId: 'child', queue: 'nobody', policy: { parent: link } });
  const dependsOn = [{ taskId: 'running', condition: 'succeeded' as const }];
  await world.admit('key of waiter', { taskId: 'waiter', queue: 'nobody', policy: { dependsOn } });
  await world.admit('key of queued', { taskId: 'queued', queue: 'nobody', policy: { timeoutMs: 3_600_000 } });
  await world.admit('key of again', { taskId: 'again', queue: 'nobody' });
  await world.cancel('again');
  const resume = { kind: 'resume', newGenerationId: 'g2', spareGenerationId: 'g2', inputJson: '{"more":1}' } as const;
  await world.apply({ taskId: 'again', intent: { ...resume, cause: causeOf('operator') } });
  await world.apply({ taskId: 'again', intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } });
  await world.admit('key of keyed', { taskId: 'keyed', queue: 'nobody', policy: { concurrencyKey: 'k' } });
  await world.admit('key of lined', { taskId: 'lined', queue: 'nobody', policy: { concurrencyKey: 'k' } });
  await world.admit('key of gone', { taskId: 'gone', queue: 'nobody' });
  await world.cancel('gone');
  const { lastEvent: version } = await world.stored('gone');
  await world.authority.upkeep.purge({ taskId: 'gone', version });
  while (await real.sweepPurged());
  await world.settle();
  if (world.defects.length + world.errors.length > 0) throw new Error('the world is not well');
  world.kill();
  return world.clock.nowMs();
}
