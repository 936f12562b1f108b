// The stores that the contract is run on.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { Engine } from './store-under-test.js';

export const memoryEngine: Engine = {
  name: 'memory',
  open: () => Promise.resolve(openMemoryStore()),
};

export const sqliteEngine: Engine = {
  name: 'sqlite',
  open: () => openSqliteStore({ path: join(temporaryFolder(), 'reeve.db') }),
};

/** Removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'reeve-store-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
