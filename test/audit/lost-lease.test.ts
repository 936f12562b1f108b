// A repaired task whose session went meanwhile: whoever repeats the repair takes the lease that the first could not.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { Repairs } from '../../src/audit/repairs.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { refuse } from '../../src/kernel/refusal.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { endOf } from '../contract/sample-plans.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';
import { published } from './stored-file.js';

it.each(['its key again', 'another key'])('a lost lease that could not be taken is taken with %s', async (which) => {
  const path = join(temporaryFolder(), 'reeve.db');
  const world = await World.open({ real: await openSqliteStore({ path }), cacheBytes: 0, timers: 'stopped' });
  const { sessionId, attachment } = await openWorker(world);
  const claimed = published(world, 'a', 'reeve.task.claimed');
  await world.admit('a', { taskId: 'a' });
  await claimed;
  const db = new Database(path);
  db.prepare("UPDATE tasks SET record = 'x'").run();
  db.close();
  await world.authority.writeSession({ kind: 'end', sessionId, attachment, end: endOf() });
  const repairs = new Repairs(world.authority, new Auditor(world.authority, () => 0));
  const cause = { ...causeOf('admin'), reason: reason('run.repaired.operator', 'a disk went bad') };
  const repair = (key: string) =>
    repairs.repair({
      taskId: 'a',
      kind: 'rebuild_record',
      eventNumber: 0,
      key: { key, contentHash: 'sha256:r' },
      cause,
    });
  const apply = world.authority.apply.bind(world.authority);
  world.authority.apply = (request) => {
    world.authority.apply = apply;
    expect(request.intent.kind).toBe('session_lost');
    return Promise.resolve({ kind: 'refused', refusal: refuse('OVERLOADED', 'full', {}), record: null });
  };
  expect(await repair('first')).toMatchObject({ kind: 'refused', refusal: { reason: 'OVERLOADED' } });
  await repair(which === 'another key' ? 'second' : 'first');
  expect(await world.stored('a')).toMatchObject({ status: 'queued', lease: null });
});
