// The configuration of a server: four sources in their order, and what is refused.

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { loadConfig } from '../../src/server/load-config.js';
import { openStore } from '../../src/deployment/open-store.js';
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
      actionKinds: [{ name: 'crawl' }, { name: 'index' }],
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
      expect(() => spec.read(spec.default, () => null)).not.toThrow();
    }
  });
});

describe('limits of concurrency keys', () => {
  const concurrency = [
    { pattern: 'tenant-*', limit: 4 },
    { pattern: 'a=b', limit: 2 },
  ];

  it('are a list in the file', () => {
    const file = fileOf('concurrency:\n  - {key: "tenant-*", limit: 4}\n  - {key: "a=b", limit: 2}\n');
    expect(loadConfig({ file, env: {} })).toMatchObject({ concurrency });
  });

  it('are pairs in flags and variables', () => {
    expect(loadConfig({ flags: { concurrency: 'tenant-*=4, a=b=2' }, env: {} })).toMatchObject({ concurrency });
    expect(loadConfig({ env: { REEVE_CONCURRENCY: 'tenant-*=4,a=b=2' } })).toMatchObject({ concurrency });
    expect(loadConfig({ env: {} })).toMatchObject({ concurrency: [] });
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
  ])('refuse %j', (sources, message) => {
    expect(() => loadConfig({ env: {}, ...sources })).toThrow(message);
  });
});

describe('action kinds', () => {
  const SCHEMA = '{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}';

  it('are names, or say more about a kind; paths are relative to the file', () => {
    const path = fileOf(
      [
        'action_kinds:',
        '  - crawl',
        '  - { name: index, timeout: 1h30m }',
        '  - name: fetch',
        '    allow_empty_args: false',
        '    args_schema: schemas/fetch.json',
        '  - name: agent',
        '    args_schema: { type: object, required: [prompt] }',
        '  - { name: sweep, args_schema: sweep.yaml }',
      ].join('\n'),
    );
    mkdirSync(join(dirname(path), 'schemas'));
    writeFileSync(join(dirname(path), 'schemas', 'fetch.json'), SCHEMA);
    writeFileSync(join(dirname(path), 'sweep.yaml'), 'type: object\n');
    expect(loadConfig({ file: path }).actionKinds).toEqual([
      { name: 'crawl' },
      { name: 'index', timeoutMs: 5_400_000 },
      {
        name: 'fetch',
        allowEmptyArgs: false,
        argsSchema: JSON.parse(SCHEMA) as object,
        argsSchemaFile: 'schemas/fetch.json',
      },
      { name: 'agent', argsSchema: { type: 'object', required: ['prompt'] } },
      { name: 'sweep', argsSchema: { type: 'object' }, argsSchemaFile: 'sweep.yaml' },
    ]);
  });

  it.each([
    ['[{ name: crawl, shema: {} }]', /^action_kinds: \[0\] crawl: shema: no such key; there are name, args_schema/],
    ['[ok, { args_schema: {} }]', /^action_kinds: \[1\]: name: is required/],
    ['[[crawl]]', /^action_kinds: \[0\]: must be a name, or a mapping/],
    ['[{ name: crawl, timeout: 5 }]', /\[0\] crawl: timeout: a duration has units/],
    ['[{ name: crawl, timeout: 20000d }]', /\[0\] crawl: timeout: must be from 1 ms/],
    ['[{ name: crawl, allow_empty_args: "no" }]', /\[0\] crawl: allow_empty_args: must be true or false/],
    ['[{ name: crawl, args_schema: none.json }]', /\[0\] crawl: args_schema: none.json: ENOENT/],
    ['[{ name: crawl, args_schema: schema.txt }]', /\[0\] crawl: args_schema: schema.txt: must be a .json or .yaml/],
    ['[{ name: crawl, args_schema: true }]', /\[0\] crawl: args_schema: must be a JSON Schema/],
  ])('refuses %s', (written, message) => {
    expect(() => loadConfig({ file: fileOf(`action_kinds: ${written}`) })).toThrow(message);
  });

  it.each([
    ['is none', '{"type":"object","requird":["url"]}', /.*unknown keyword: "requird"/],
    [
      'goes in a circle',
      '{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
      /#\/\$defs\/a → #\/\$defs\/b → #\/\$defs\/a: refers to itself without going on into the args$/,
    ],
  ])('end the start when a schema %s, with the kind and the file named', async (_how, schema, why) => {
    const path = fileOf('action_kinds: [crawl, { name: fetch, args_schema: fetch.json }]');
    writeFileSync(join(dirname(path), 'fetch.json'), schema);
    const started = startServer({ ...loadConfig({ file: path }), logLevel: 'silent' }, { store: openMemoryStore() });
    const place = /^action_kinds\[1\] fetch: args_schema: fetch.json: /;
    await expect(started).rejects.toThrow(new RegExp(`${place.source}${why.source}`));
  });
});

describe('classes of capabilities', () => {
  it.each([
    [{ file: fileOf('capabilities: { warmed-cache: affinity, gpu: serialization, zone:1: eligibility }') }],
    [{ env: { REEVE_CAPABILITIES: 'warmed-cache=affinity, gpu=serialization,zone:1=eligibility' } }],
  ])('are written as a mapping, or as pairs (%#)', (sources) => {
    const { capabilityClasses } = loadConfig(sources);
    expect([...capabilityClasses]).toEqual([
      ['warmed-cache', 'affinity'],
      ['gpu', 'serialization'],
      ['zone:1', 'eligibility'],
    ]);
    expect(loadConfig().capabilityClasses.size).toBe(0);
  });

  it.each([
    [{ flags: { capabilityClasses: 'gpu' } }, /^--capabilities: must be pairs of label=class/],
    [{ flags: { capabilityClasses: 'gpu=fast' } }, /gpu: must be one of eligibility, serialization, affinity/],
    [{ flags: { capabilityClasses: 'gpu=affinity,gpu=eligibility' } }, /gpu: is given twice/],
    [{ file: fileOf('capabilities: { "a b": affinity }') }, /^capabilities: "a b": a label/],
    [{ file: fileOf('capabilities: [gpu]') }, /^capabilities: must be pairs/],
  ])('refuse %j', (sources, message) => {
    expect(() => loadConfig(sources)).toThrow(message);
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
    await expect(startServer({ ...loadConfig(), actionKinds: [{ name: 'no name' }] })).rejects.toThrow(
      /action_kinds\[0\]/,
    );
  });
});
