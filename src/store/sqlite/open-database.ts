/**
 * Opening the database file: its settings, whose file it is, and its schema. Nothing is written to a file that is not
 * ours, nor to one that a newer Reeve made.
 */
import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import { HistoryChain, MIN_CHAIN_KEY_BYTES } from '../history-chain.js';
import { StoreError } from '../store-error.js';
import { APPLICATION_ID, MIGRATIONS } from './schema.js';
import type { SqliteSettings } from './settings.js';

const SYNCHRONOUS_FULL = 2;

/** Throws StoreError `fatal` with a message that names what is wrong with the file. */
export function openForWriting(settings: SqliteSettings): Database.Database {
  const db = connect(settings.path, false);
  try {
    db.pragma(`busy_timeout = ${settings.busyTimeoutMs}`);
    const version = checkOwnership(db, settings.path);
    applySettings(db, settings);
    migrate(db, version);
    checkChainKey(db, settings);
    return db;
  } catch (error) {
    db.close();
    throw asRefusal(error, settings.path);
  }
}

/** A second connection for long reads; the writer opened the file before, so it is known to be ours. */
export function openForReading(settings: SqliteSettings): Database.Database {
  const db = connect(settings.path, true);
  db.pragma(`busy_timeout = ${settings.busyTimeoutMs}`);
  db.pragma(`cache_size = ${-settings.readerCacheKiB}`);
  return db;
}

function connect(path: string, readonly: boolean): Database.Database {
  try {
    return new Database(path, { readonly, fileMustExist: readonly });
  } catch (error) {
    throw asRefusal(error, path);
  }
}

/** The schema version found; 0 in a file that is new. */
function checkOwnership(db: Database.Database, path: string): number {
  const owner = pragmaNumber(db, 'application_id');
  const version = pragmaNumber(db, 'user_version');
  const objects = db.prepare<[], number>('SELECT count(*) FROM sqlite_master').pluck().get();
  if (owner === 0 && version === 0 && objects === 0) return 0;
  if (owner !== APPLICATION_ID) throw new StoreError('fatal', `${path} is a database of something else, not of Reeve`);
  if (version > MIGRATIONS.length) {
    const known = String(MIGRATIONS.length);
    throw new StoreError(
      'fatal',
      `${path} has schema ${version}, made by a newer Reeve; this one knows up to ${known}`,
    );
  }
  return version;
}

function applySettings(db: Database.Database, settings: SqliteSettings): void {
  const mode = db.pragma('journal_mode = WAL', { simple: true });
  if (mode !== 'wal') throw new StoreError('fatal', `${settings.path} can't be kept in WAL mode (${String(mode)})`);
  db.pragma('synchronous = FULL');
  // Read back: a promise of durability that the library silently ignored would be found out by a power cut.
  if (pragmaNumber(db, 'synchronous') !== SYNCHRONOUS_FULL) {
    throw new StoreError('fatal', `${settings.path}: synchronous = FULL was not accepted`);
  }
  db.pragma('foreign_keys = OFF');
  db.pragma('trusted_schema = OFF');
  db.pragma('temp_store = MEMORY');
  db.pragma(`cache_size = ${-settings.writerCacheKiB}`);
  db.pragma(`wal_autocheckpoint = ${settings.checkpointPages}`);
  db.pragma(`journal_size_limit = ${settings.walBytes}`);
  if (settings.maxPages !== null) db.pragma(`max_page_count = ${settings.maxPages}`);
}

/** Each step with its version in one transaction: a crash between two leaves a version that is true. */
function migrate(db: Database.Database, from: number): void {
  for (const [step, statements] of MIGRATIONS.entries()) {
    if (step < from) continue;
    db.transaction(() => {
      db.exec(statements);
      if (step === 0) {
        db.pragma(`application_id = ${APPLICATION_ID}`);
        db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)').run('secret', randomBytes(32).toString('hex'));
      }
      db.pragma(`user_version = ${step + 1}`);
    }).immediate();
  }
}

/** A link made with another key than the one before would break every chain that it continues. */
function checkChainKey(db: Database.Database, { chainKey, path }: SqliteSettings): void {
  if (chainKey !== null && chainKey.length < MIN_CHAIN_KEY_BYTES) {
    throw new StoreError('fatal', `the chain key is shorter than ${MIN_CHAIN_KEY_BYTES} bytes`);
  }
  const { keyId } = new HistoryChain(chainKey);
  db.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)').run('chain_key', keyId);
  const made = readMeta(db, 'chain_key');
  if (made === keyId) return;
  const told = made === 'none' ? 'without a chain key' : `with the chain key ${made ?? ''}`;
  const given = keyId === 'none' ? 'none is given' : `${keyId} is given`;
  throw new StoreError('fatal', `${path} was made ${told}, and ${given}; its hash chains would break`);
}

/** The first sequence of which a link is wanted. */
export function readChainFrom(db: Database.Database): number {
  return Number(readMeta(db, 'chain_from') ?? 1);
}

function readMeta(db: Database.Database, name: string): string | undefined {
  return db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
}

export function readSecret(db: Database.Database): string {
  const secret = readMeta(db, 'secret');
  if (secret === undefined || !/^[0-9a-f]{64}$/.test(secret))
    throw new StoreError('fatal', 'the store has lost its secret');
  return secret;
}

export function readIncarnation(db: Database.Database): string {
  const incarnation = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get('incarnation');
  if (incarnation === undefined || incarnation === '')
    throw new StoreError('fatal', 'the store has lost its incarnation');
  return incarnation;
}

function pragmaNumber(db: Database.Database, name: string): number {
  return Number(db.pragma(name, { simple: true }));
}

function asRefusal(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  if (!(error instanceof Database.SqliteError)) {
    return new StoreError(
      'fatal',
      `${path} can't be opened: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (error.code === 'SQLITE_NOTADB') return new StoreError('fatal', `${path} is not a database`, { cause: error });
  return new StoreError('fatal', `${path} can't be opened: ${error.message} (${error.code})`, { cause: error });
}
