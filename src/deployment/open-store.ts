/**
 * From the store option to an open store. The memory store forgets everything at exit and is none of them: whoever
 * wants it (`reeve dev`, tests) opens it and hands it to the server.
 */
import { readFileSync } from 'node:fs';
import { MIN_CHAIN_KEY_BYTES } from '../store/history-chain.js';
import { openSqliteStore } from '../store/sqlite/sqlite-store.js';
import type { TaskStore } from '../store/task-store.js';
import { ConfigError } from './option-values.js';

const SQLITE = 'sqlite:';
const MEMORY = 'memory:';

/** Throws ConfigError for what names no store, StoreError when the store cannot be opened. */
export async function openStore(url: string, chainKeyFile: string | null = null): Promise<TaskStore> {
  if (url === MEMORY) throw new ConfigError('memory: forgets everything at exit; only reeve dev may use it');
  const path = url.startsWith(SQLITE) ? url.slice(SQLITE.length) : '';
  if (path === '') throw new ConfigError('store: must be sqlite:PATH');
  return openSqliteStore({ path, chainKey: chainKeyFile === null ? null : readChainKey(chainKeyFile) });
}

/** The bytes of the file as they are. Throws ConfigError; the message never has any of them. */
function readChainKey(path: string): Uint8Array {
  let key: Uint8Array;
  try {
    key = Uint8Array.from(readFileSync(path));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'it cannot be read';
    throw new ConfigError(`chain_key_file: ${path}: ${code}`);
  }
  if (key.length >= MIN_CHAIN_KEY_BYTES) return key;
  throw new ConfigError(`chain_key_file: ${path} has ${key.length} bytes; a key has ${MIN_CHAIN_KEY_BYTES} or more`);
}
