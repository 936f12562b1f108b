// The configuration of a server: four sources in their order, and what is refused.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { loadConfig } from '../../src/server/load-config.js';
import { openStore } from '../../src/server/open-store.js';
import { OPTIONS } from '../../src/server/options.js';
import { startServer } from '../../src/server/start-server.js';
import { startFixture } from './server-fixture.js';

function fileOf(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'reeve-config-')), 'reeve.yaml');
  writeFileSync(path, text);
  return path;
}

describe('loadConfig', () => {
  it('has a default for everything', () => {
    expect(loadConfig()).toMatchObject({
      listen: '127.0.0.1:7450',
      store: 'sqlite:./reeve.db',
      logLevel: 'info',
      actionKinds: [],
      acceptTimeoutMs: 5_000,
      drainGraceMs: 25_000,
    });
  });

  it('takes flags before environment before file before defaults', () => {
    const file = fileOf('drain_grace: 3s\naccept_timeout: 4s\nlisten: "0.0.0.0:1"\naction_kinds: [crawl, index]\n');
    const env = { REEVE_ACCEPT_TIMEOUT: '2s', REEVE_LISTEN: '0.0.0.0:2', REEVE_STORE: '' };
    const config = loadConfig({ flags: { listen: '0.0.0.0:3' }, env, file });
    expect(config).toMatchObject({
      listen: '0.0.0.0:3',
      acceptTimeoutMs: 2_000,
      drainGraceMs: 3_000,
      store: 'sqlite:./reeve.db',
      actionKinds: ['crawl', 'index'],
    });
  });

  it.each([
    [{ env: { REEVE_DRAIN_GRACE: '5' } }, /^REEVE_DRAIN_GRACE: a duration has units/],
    [{ env: { REEVE_LOG_LEVEL: 'loud' } }, /^REEVE_LOG_LEVEL: must be one of/],
    [{ flags: { cacheMib: '1.5' } }, /^--cache: must be a whole number/],
    [{ flags: { retention: '30' } }, /^--retention: a duration has units/],
    [{ flags: { retention: '3651d' } }, /^--retention: must be from 0 ms/],
    [{ env: { REEVE_RETENTION: 'done=1d' } }, /^REEVE_RETENTION: done is no end of a task/],
    [{ file: fileOf('retention: { running: 1d }') }, /^retention: running is no end/],
    [{ file: fileOf('drian_grace: 1s') }, /^drian_grace: no such option/],
    [{ file: fileOf('[1]') }, /must be a mapping/],
    [{ file: '/no/such/reeve.yaml' }, /reeve.yaml/],
  ])('refuses %j', (sources, message) => {
    expect(() => loadConfig(sources)).toThrow(message);
  });

  it.each([
    ['never', { completed: null, failed: null, timed_out: null, cancelled: null, skipped: null }],
    ['1h', { completed: 3_600_000, failed: 3_600_000, skipped: 3_600_000 }],
    ['failed=2h,1h,cancelled=never', { completed: 3_600_000, failed: 7_200_000, cancelled: null }],
    ['timed_out=0s', { completed: null, timed_out: 0 }],
  ])('reads a retention of %s', (retention, expected) => {
    expect(loadConfig({ flags: { retention } }).retention).toMatchObject(expected);
  });

  it('reads a retention by status out of a file', () => {
    const file = fileOf('retention:\n  all: 1h\n  failed: never\n');
    expect(loadConfig({ file }).retention).toMatchObject({ completed: 3_600_000, failed: null });
    const one = fileOf('retention: 2h\n');
    expect(loadConfig({ file: one }).retention).toMatchObject({ completed: 7_200_000, failed: 7_200_000 });
  });

  it('names every option once, in three forms', () => {
    const specs = Object.values(OPTIONS);
    for (const form of ['flag', 'env', 'yaml'] as const) {
      expect(new Set(specs.map((spec) => spec[form])).size).toBe(specs.length);
    }
    for (const spec of specs) {
      expect(spec.description).not.toBe('');
      expect(() => spec.read(spec.default)).not.toThrow();
    }
  });
});

describe('listen', () => {
  it.each(['localhost', '7451', '127.0.0.1:99999', ':7450', 'a b:1', ''])('%j is no address', (listen) => {
    expect(() => loadConfig({ env: { REEVE_LISTEN: listen }, flags: { listen } })).toThrow(/listen/);
  });

  it.each(['127.0.0.1:0', '[::1]:7450', 'localhost:1'])('%j is one', (listen) => {
    expect(loadConfig({ flags: { listen } })).toMatchObject({ listen });
  });
});

describe('starting', () => {
  it('refuses a store that forgets, a store that is none, and a kind that is no name', async () => {
    await expect(openStore('memory:')).rejects.toThrow(/reeve dev/);
    await expect(openStore('postgres://x')).rejects.toThrow(/sqlite:PATH/);
    const taken = await startFixture();
    const listen = taken.server.address;
    await expect(
      startServer({ ...loadConfig(), listen, logLevel: 'silent' }, { store: openMemoryStore() }),
    ).rejects.toThrow(/cannot listen on .*: the port is in use/);
    await taken.close();
    await expect(startServer({ ...loadConfig(), actionKinds: ['no name'] })).rejects.toThrow(/action_kinds\[0\]/);
  });
});
