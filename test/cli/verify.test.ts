// verify and repair as an operator runs them: on a service, before and after its file was damaged.

import Database from 'better-sqlite3';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cli, type Finished, type Service, jsonLines, parsed, startService } from './cli-rig.js';

const folder = mkdtempSync(join(tmpdir(), 'reeve-cli-verify-'));
const store = join(folder, 'reeve.db');
const keyFile = join(folder, 'chain.key');
let service: Service;
let bad: string;
let good: string;

beforeAll(async () => {
  writeFileSync(keyFile, 'a key of the hash chains, 32 bytes or more');
  service = await startService('--store', `sqlite:${store}`, '--chain-key-file', keyFile);
  bad = await submitted();
  good = await submitted();
});

afterAll(async () => {
  await service.close();
  Cli.killAll();
  rmSync(folder, { recursive: true, force: true });
});

async function submitted(): Promise<string> {
  const { out, end } = await service.reeve('submit', 'agent', '--json');
  expect(end).toBe(0);
  return (parsed(out)['task'] as { task_id: string }).task_id;
}

const serve = (...flags: readonly string[]): Promise<Finished> =>
  Cli.run(['serve', '--listen', '127.0.0.1:0', '--store', `sqlite:${store}`, ...flags]);

describe('verify', () => {
  it('says what it has checked, and that nothing is wrong', async () => {
    expect(await service.reeve('verify')).toEqual({
      end: 0,
      out: '',
      err: '2 tasks, 2 events, 2 links, 2 keys checked; nothing found\n',
    });
    expect((await service.reeve('verify', bad, '--page-size', '1')).err).toMatch(/^1 tasks/);
    expect((await service.reeve('verify', 'nobody')).end).toBe(3);
  });

  it('tells what is wrong, as a table and for programs, and repair mends it', async () => {
    const db = new Database(store);
    db.prepare(`UPDATE tasks SET record = '1a{oops', next_due_at = 5 WHERE task_id = ?`).run(bad);
    db.prepare('UPDATE tasks SET ready_order = NULL WHERE task_id = ?').run(good);
    db.close();
    const { end, out, err } = await service.reeve('verify');
    expect({ end, err }).toEqual({ end: 1, err: '2 tasks, 2 events, 2 links, 2 keys checked; 2 found\n' });
    expect(out.split('\n').map((line) => line.split(/ {2,}/).map((cell) => cell.trim()))).toEqual([
      ['TASK', 'INVARIANT', 'EVENT', 'DETAIL'],
      [bad, 'store.record', 'record is not JSON'],
      [good, 'index.ready', expect.stringMatching(/was expected, none is there/) as string],
      [''],
    ]);
    const machine = await service.reeve('verify', '--json');
    expect(machine.end).toBe(1);
    expect(jsonLines(machine.out)).toMatchObject([
      { task_id: bad, invariant: 'store.record' },
      { task_id: good, invariant: 'index.ready' },
    ]);
    const repair = (...args: readonly string[]) => service.reeve('repair', ...args, '--reason', 'a bad disk');
    const dry = await repair(bad, '--kind', 'rebuild-record', '--dry-run');
    expect(dry.end).toBe(0);
    expect(dry.out).toMatch(/nothing was done \(--dry-run\)\nstatus {4}damaged\n$/);
    const done = await repair(bad, '--kind', 'rebuild-record', '--request-key', 'once');
    expect(done.out).toMatch(/store\.record.*\nrepaired\nstatus {4}queued\n$/);
    expect((await repair(bad, '--kind', 'rebuild-record', '--request-key', 'once')).out).toMatch(
      /repaired \(replayed\)/,
    );
    expect(parsed((await repair(good, '--kind', 'reindex', '--json')).out)).toMatchObject({ applied: true });
    expect((await repair(good, '--kind', 'reindex')).out).toMatch(/^nothing to repair\n/);
    expect((await repair(good, '--kind', 'redact-payload', '--event', '1')).end).toBe(4);
    expect((await service.reeve('repair', good, '--kind', 'reindex')).end).toBe(2);
    expect((await service.reeve('verify')).end).toBe(0);
  });
});

describe('the chain key', () => {
  it.each([
    ['is not there', () => ['--chain-key-file', join(folder, 'none')], 2, /chain_key_file: .*none: ENOENT/],
    [
      'is short',
      () => {
        writeFileSync(join(folder, 'short.key'), 'short');
        return ['--chain-key-file', join(folder, 'short.key')];
      },
      2,
      /short\.key has 5 bytes; a key has 32 or more/,
    ],
  ])('that %s is a mistake of the configuration', async (_what, flags, end, message) => {
    const ended = await serve(...flags());
    expect(ended.end).toBe(end);
    expect(ended.err).toMatch(message);
  });

  it('is asked for again by the store that was made with it', async () => {
    await service.close();
    const ended = await serve();
    expect(ended.end).toBe(1);
    expect(ended.err).toMatch(/was made with the chain key [0-9a-f]{16}, and none is given/);
  });
});
