/**
 * One process per file. The lock is an exclusive SQLite lock on a small file beside the database, held as long as the
 * store is open; the operating system drops it with the process, however that ends. (Exclusive locking of the database
 * itself would shut out the store's own second connection.)
 *
 * POSIX drops a process's locks on a file when it closes *any* descriptor of it: nothing else in the process may ever
 * open the lock file.
 */
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { StoreError } from '../store-error.js';

export interface FileLock {
  release(): void;
}

/** The database under its real name, so that two paths to one file meet at one lock. */
export function realPathOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(path);
  if (!existsSync(folder)) throw new StoreError('fatal', `${folder} does not exist; the store's file goes into it`);
  return join(realpathSync(folder), basename(path));
}

/** Throws StoreError `fatal` when another process, or another store of this one, has the file open. */
export function lockFile(databasePath: string): FileLock {
  const path = `${databasePath}-lock`;
  let db: Database.Database | null = null;
  try {
    db = new Database(path, { timeout: 0 });
    db.pragma('locking_mode = EXCLUSIVE');
    db.exec('BEGIN EXCLUSIVE');
    const held = db;
    return { release: () => held.close() };
  } catch (error) {
    db?.close();
    const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
    const why = error instanceof Error ? error.message : String(error);
    throw new StoreError(
      'fatal',
      busy ? `${databasePath} is open in another process; one process per file` : `${path} can't be locked: ${why}`,
      { cause: error },
    );
  }
}
