import { describe, expect, it } from 'vitest';
import { authorityViolations, lifecycleTables, sqlViolations } from './single-writer.js';
import { parseSource, readSources } from './source-file.js';

const sources = readSources(process.cwd(), 'src');

function sqlIn(path: string, text: string): string[] {
  return sqlViolations(parseSource(path, text));
}

describe('lifecycle tables', () => {
  it('are written by store adapters only', () => {
    expect(sources.flatMap(sqlViolations)).toEqual([]);
  });

  it.each(lifecycleTables)('a write of %s elsewhere is caught', (table) => {
    const text = `db.exec("INSERT INTO ${table} VALUES (1)");`;
    expect(sqlIn('src/authority/authority.ts', text)).toHaveLength(1);
  });

  it.each([
    'INSERT OR REPLACE INTO tasks (id) VALUES (?)',
    'insert ignore into `tasks` (id) values (?)',
    'REPLACE INTO meta VALUES (1)',
    'UPDATE tasks\n  SET status = ?',
    'UPDATE main.tasks AS t SET status = ?',
    'UPDATE tasks t JOIN sessions s ON s.id = t.owner SET t.status = ?',
    'DELETE FROM "history" WHERE task = ?',
    'DELETE t FROM tasks t',
    'TRUNCATE TABLE sessions',
    'DROP TABLE IF EXISTS routes',
    'WITH x AS (SELECT 1) DELETE FROM intent_keys',
  ])('%s is caught', (sql) => {
    expect(sqlIn('src/dispatcher/dispatcher.ts', `run(${JSON.stringify(sql)});`)).toHaveLength(1);
  });

  it('a table with a computed name is caught', () => {
    const text = 'run(`UPDATE ${table} SET status = ${status}`);';
    expect(sqlIn('src/outbox/delivery.ts', text)).toHaveLength(1);
  });

  it('the port itself may not write them either', () => {
    const text = `const sql = 'DELETE FROM tasks';`;
    expect(sqlIn('src/store/task-store.ts', text)).toHaveLength(1);
    expect(sqlIn('src/store/sqlite/statements.ts', text)).toEqual([]);
  });

  it('reading, prose and comments are no writes', () => {
    const text = `
      // UPDATE tasks SET status = 1
      run('SELECT * FROM tasks');
      describe('Update tasks of a worker');
    `;
    expect(sqlIn('src/cli/commands/list.ts', text)).toEqual([]);
  });
});

describe('the authority', () => {
  it('is made by composition roots only', () => {
    expect(sources.flatMap(authorityViolations)).toEqual([]);
  });

  it.each([
    'new Authority(store)',
    'Authority.open({ store })',
    'openAuthority(store)',
    'authority.createAuthority({ store })',
  ])('%s elsewhere is caught', (text) => {
    const made = (path: string): string[] => authorityViolations(parseSource(path, text));
    expect(made('src/services/task-service.ts')).toHaveLength(1);
    expect(made('src/cli/commands/submit.ts')).toHaveLength(1);
    expect(made('src/server/start-server.ts')).toHaveLength(1);
    expect(made('src/embed/open-authority.ts')).toHaveLength(1);
    expect(made('src/deployment/engine.ts')).toEqual([]);
    expect(made('src/authority/authority.ts')).toEqual([]);
  });
});
