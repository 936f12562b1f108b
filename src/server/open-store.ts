/**
 * From the store option to an open store. The memory store forgets everything at exit and is none of them: whoever
 * wants it (`reeve dev`, tests) opens it and hands it to the server.
 */
import { openSqliteStore } from '../store/sqlite/sqlite-store.js';
import type { TaskStore } from '../store/task-store.js';
import { ConfigError } from './option-values.js';

const SQLITE = 'sqlite:';
const MEMORY = 'memory:';

/** Throws ConfigError for what names no store, StoreError when the store cannot be opened. */
export async function openStore(url: string): Promise<TaskStore> {
  if (url === MEMORY) throw new ConfigError('memory: forgets everything at exit; only reeve dev may use it');
  const path = url.startsWith(SQLITE) ? url.slice(SQLITE.length) : '';
  if (path === '') throw new ConfigError('store: must be sqlite:PATH');
  return openSqliteStore({ path });
}
