/**
 * From the store option to an open store. The memory store forgets everything at exit, so only `reeve dev` and tests
 * get it.
 */
import { openMemoryStore } from '../store/memory/memory-store.js';
import { openSqliteStore } from '../store/sqlite/sqlite-store.js';
import type { TaskStore } from '../store/task-store.js';
import { ConfigError } from './option-values.js';

const SQLITE = 'sqlite:';
const MEMORY = 'memory:';

/** Throws ConfigError for what names no store, StoreError when the store cannot be opened. */
export async function openStore(url: string, dev: boolean): Promise<TaskStore> {
  if (url === MEMORY) {
    if (!dev) throw new ConfigError('memory: forgets everything at exit; only reeve dev may use it');
    return openMemoryStore();
  }
  const path = url.startsWith(SQLITE) ? url.slice(SQLITE.length) : '';
  if (path === '') throw new ConfigError('store: must be sqlite:PATH');
  return openSqliteStore({ path });
}
