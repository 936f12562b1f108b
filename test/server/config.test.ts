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
    [{ file: fileOf('drian_grace: 1s') }, /^drian_grace: no such option/],
    [{ file: fileOf('[1]') }, /must be a mapping/],
    [{ file: '/no/such/reeve.yaml' }, /reeve.yaml/],
  ])('refuses %j', (sources, message) => {
    expect(() => loadConfig(sources)).toThrow(message);
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

describe('concurrency and capabilities', () => {
  const concurrency = [
    { pattern: 'tenant-*', limit: 4 },
    { pattern: 'a=b', limit: 2 },
  ];
  const capabilities = new Map([
    ['gpu-exclusive', 'serialization'],
    ['warm', 'affinity'],
    ['linux', 'eligibility'],
  ]);

  it('are a list and a mapping in the file', () => {
    const file = fileOf(
      'concurrency:\n  - {key: "tenant-*", limit: 4}\n  - {key: "a=b", limit: 2}\n' +
        'capabilities:\n  gpu-exclusive: serialization\n  warm: affinity\n  linux: eligibility\n',
    );
    expect(loadConfig({ file, env: {} })).toMatchObject({ concurrency, capabilities });
  });

  it('are pairs in flags and variables', () => {
    const env = { REEVE_CAPABILITIES: 'gpu-exclusive=serialization, warm=affinity,linux=eligibility' };
    expect(loadConfig({ flags: { concurrency: 'tenant-*=4, a=b=2' }, env })).toMatchObject({
      concurrency,
      capabilities,
    });
    expect(loadConfig({ env: {} })).toMatchObject({ concurrency: [], capabilities: new Map() });
  });

  it.each([
    [{ env: { REEVE_CONCURRENCY: 'tenant' } }, /^REEVE_CONCURRENCY: must be pairs/],
    [{ env: { REEVE_CONCURRENCY: 'tenant=0' } }, /^REEVE_CONCURRENCY: tenant=0: must be a whole number from 1/],
    [{ env: { REEVE_CONCURRENCY: '=4' } }, /must be pairs/],
    [{ file: fileOf('concurrency: [{key: a, limit: 1.5}]') }, /^concurrency: \[0\]: must be a whole number/],
    [
      { file: fileOf('concurrency: [{key: a, limit: 1}, {pattern: b}]') },
      /^concurrency: \[1\]: must be a mapping of key/,
    ],
    [{ file: fileOf('concurrency: [{limit: 1}]') }, /^concurrency: \[0\]: must be a single value/],
    [{ file: fileOf('capabilities: {gpu: serial}') }, /^capabilities: gpu: must be one of eligibility, serialization/],
    [{ flags: { capabilities: 'a=affinity,a=eligibility' } }, /^--capabilities: a is given twice/],
  ])('refuse %j', (sources, message) => {
    expect(() => loadConfig({ env: {}, ...sources })).toThrow(message);
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
