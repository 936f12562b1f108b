/**
 * The tables of a Reeve file and the migrations that lead to them, in order. A migration that was released is never
 * edited: the next one changes what it left.
 *
 * Clustered keys are integers in admission order; the indexes of what is ready, due and leased are partial, so that a
 * backlog of finished tasks costs them nothing. Identity is TEXT under the BINARY collation: SQLite compares its UTF-8
 * bytes, so case, trailing spaces and normal forms all count.
 */

/** "Reev": tells a Reeve file from any other SQLite database. */
export const APPLICATION_ID = 0x52656576;

const FIRST_SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

  CREATE TABLE routes (route_id INTEGER PRIMARY KEY, route_key TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE tasks (
    task_order INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    route_id INTEGER NOT NULL,
    ready_order INTEGER,
    next_due_at INTEGER,
    lease_session TEXT,
    record TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX tasks_by_id ON tasks (task_id);
  CREATE INDEX tasks_ready ON tasks (route_id, ready_order) WHERE ready_order IS NOT NULL;
  CREATE INDEX tasks_due ON tasks (next_due_at) WHERE next_due_at IS NOT NULL;
  CREATE INDEX tasks_leased ON tasks (lease_session) WHERE lease_session IS NOT NULL;

  CREATE TABLE task_keys (
    namespace TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    task_order INTEGER NOT NULL,
    PRIMARY KEY (namespace, idempotency_key)
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE admissions (task_order INTEGER PRIMARY KEY, admission TEXT NOT NULL) STRICT;

  CREATE TABLE history (
    first_sequence INTEGER PRIMARY KEY,
    task_order INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    events TEXT NOT NULL
  ) STRICT;
  CREATE INDEX history_by_task ON history (task_order, last_number);

  CREATE TABLE intent_keys (
    task_order INTEGER NOT NULL,
    intent_key TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (task_order, intent_key)
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    state INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    attachment INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    linger_ms INTEGER,
    worker_name TEXT NOT NULL,
    hello TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sessions_alive ON sessions (expires_at) WHERE state <> 2;

  CREATE TABLE diagnostics (
    task_order INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    at INTEGER NOT NULL,
    said TEXT NOT NULL,
    PRIMARY KEY (task_order, epoch, ordinal)
  ) WITHOUT ROWID, STRICT;
`;

/** Families and dependencies. Not keyed by ids but by orders; a plain task has no row in any of them. */
const FAMILIES = `
  CREATE TABLE children (
    parent_order INTEGER NOT NULL,
    child_order INTEGER NOT NULL,
    live INTEGER NOT NULL,
    PRIMARY KEY (parent_order, child_order)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX children_live ON children (parent_order, child_order) WHERE live = 1;

  CREATE TABLE dependencies (
    upstream_order INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    waiter_order INTEGER NOT NULL,
    condition INTEGER NOT NULL,
    PRIMARY KEY (upstream_order, generation, waiter_order)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX dependencies_by_waiter ON dependencies (waiter_order);

  CREATE TABLE family_counts (
    task_order INTEGER PRIMARY KEY,
    live_children INTEGER NOT NULL,
    unsatisfied INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE propagations (
    task_order INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    event_number INTEGER NOT NULL,
    PRIMARY KEY (task_order, generation)
  ) WITHOUT ROWID, STRICT;
`;

/** The hash chain. Commits from before have no link; from `chain_from` on every commit has one. */
const CHAIN = `
  ALTER TABLE history ADD COLUMN link BLOB;
  INSERT INTO meta (name, value)
    SELECT 'chain_from', CAST(coalesce(max(first_sequence), 0) + 1 AS TEXT) FROM history;
`;

/**
 * Purging. `tombstones` are kept for ever, by the orders that their tasks had; `purging` names those that have still left
 * something behind; `operations` are the answers to operators' calls without a task.
 */
const PURGING = `
  ALTER TABLE tasks ADD COLUMN purge_at INTEGER;
  CREATE INDEX tasks_purgeable ON tasks (purge_at) WHERE purge_at IS NOT NULL;
  CREATE INDEX children_by_child ON children (child_order);

  CREATE TABLE tombstones (
    task_order INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    parent_order INTEGER,
    first_sequence INTEGER NOT NULL,
    tombstone TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX tombstones_by_id ON tombstones (task_id);

  CREATE TABLE purging (task_order INTEGER PRIMARY KEY) STRICT;

  CREATE TABLE operations (
    operation_key TEXT PRIMARY KEY,
    content_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX operations_by_time ON operations (at);

  INSERT INTO meta (name, value) VALUES ('incarnation', lower(hex(randomblob(8))));
`;

/**
 * Permits: who holds each and who waits for it. One index for every line there is; a task that needs none has no row.
 * A record says whether its task wants to be ready, `tasks.ready_order` whether it is.
 */
const PERMITS = `
  CREATE TABLE permits (
    permit_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    most INTEGER NOT NULL,
    held INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE permit_rows (
    task_order INTEGER NOT NULL,
    permit_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    ready_order INTEGER NOT NULL,
    PRIMARY KEY (task_order, permit_id)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX permit_lines ON permit_rows (permit_id, state, ready_order, task_order);
`;

/**
 * Only running tasks hold a permit; those that queue stand in lines, one per permit and route. Keys come before
 * capabilities. Who passes is told anew after the start: here everybody who queues is put into the first of its lines.
 */
const PERMIT_LINES = `
  UPDATE permits SET name = 'serialized' || substr(name, length('capability') + 1) WHERE name LIKE 'capability%';
  ALTER TABLE permits RENAME COLUMN held TO running;

  DROP INDEX permit_lines;
  ALTER TABLE permit_rows RENAME TO permit_rows_before;
  CREATE TABLE permit_rows (
    task_order INTEGER NOT NULL,
    permit_id INTEGER NOT NULL,
    route_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    ready_order INTEGER NOT NULL,
    PRIMARY KEY (task_order, permit_id)
  ) WITHOUT ROWID, STRICT;
  INSERT INTO permit_rows (task_order, permit_id, route_id, state, ready_order)
    SELECT b.task_order, b.permit_id, t.route_id,
      CASE WHEN b.state = 2 THEN 2
        WHEN EXISTS (
          SELECT 1 FROM permit_rows_before o JOIN permits q USING (permit_id)
          WHERE o.task_order = b.task_order AND q.name < p.name) THEN 3
        ELSE 0 END,
      b.ready_order
    FROM permit_rows_before b JOIN permits p USING (permit_id) JOIN tasks t USING (task_order);
  DROP TABLE permit_rows_before;
  UPDATE tasks SET ready_order = NULL WHERE task_order IN (SELECT task_order FROM permit_rows);
  CREATE INDEX permit_rows_in_line ON permit_rows (permit_id, state, route_id, ready_order, task_order);

  CREATE TABLE permit_lines (
    permit_id INTEGER NOT NULL,
    route_id INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    PRIMARY KEY (permit_id, route_id)
  ) WITHOUT ROWID, STRICT;
  INSERT INTO permit_lines (permit_id, route_id, passed, waiting)
    SELECT permit_id, route_id, 0, count(*) FROM permit_rows WHERE state = 0 GROUP BY permit_id, route_id;
  CREATE INDEX permit_lines_by_passed ON permit_lines (permit_id, passed);
  CREATE INDEX permit_lines_waited ON permit_lines (permit_id, passed) WHERE waiting > 0;
  UPDATE permits SET running = (
    SELECT count(*) FROM permit_rows r WHERE r.permit_id = permits.permit_id AND r.state = 2);
`;

/** What tells a record from one that was edited (record-seal.ts). Records from before have none until they change. */
const SEALS = `
  ALTER TABLE tasks ADD COLUMN seal INTEGER;
`;

/**
 * Sessions that are gone: how they ended, and from when on their rows may be forgotten. Those from before go as if they had
 * ended when they would have expired, a day later; nothing is known of their end.
 */
const GONE_SESSIONS = `
  ALTER TABLE sessions ADD COLUMN forget_at INTEGER;
  ALTER TABLE sessions ADD COLUMN ended TEXT;
  UPDATE sessions SET forget_at = expires_at + 86400000 WHERE state = 2;
  CREATE INDEX sessions_gone ON sessions (forget_at) WHERE state = 2;
`;

/** `migrations[n]` leads from `user_version` n to n + 1. */
export const MIGRATIONS: readonly string[] = [
  FIRST_SCHEMA,
  FAMILIES,
  CHAIN,
  PURGING,
  PERMITS,
  PERMIT_LINES,
  SEALS,
  GONE_SESSIONS,
];
