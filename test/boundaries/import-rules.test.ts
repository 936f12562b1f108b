import { describe, expect, it } from 'vitest';
import { importViolations, layerRules } from './import-rules.js';
import { parseSource, readSources } from './source-file.js';

const root = process.cwd();

function violationsOf(path: string, text: string): string[] {
  return importViolations(parseSource(path, text));
}

describe('import directions', () => {
  it('hold in the tree', () => {
    expect(readSources(root, 'src').flatMap(importViolations)).toEqual([]);
  });

  it.each([
    ['src/kernel/decide.ts', '../lib/clock.js'],
    ['src/kernel/admission/hash.ts', '../../store/task-store.js'],
    ['src/kernel/decide.ts', 'node:fs'],
    ['src/kernel/decide.ts', 'uuid'],
    ['src/lib/clock.ts', '../kernel/status.js'],
    ['src/store/task-store.ts', '../authority/authority.js'],
    ['src/store/task-store.ts', './sqlite/sqlite-store.js'],
    ['src/store/task-store.ts', 'better-sqlite3'],
    ['src/store/sqlite/sqlite-store.ts', '../memory/memory-store.js'],
    ['src/store/sqlite/sqlite-store.ts', 'mysql2/promise'],
    ['src/store/memory/memory-store.ts', 'better-sqlite3'],
    ['src/store/mysql/mysql-store.ts', '../../authority/authority.js'],
    ['src/authority/authority.ts', '../store/sqlite/sqlite-store.js'],
    ['src/authority/authority.ts', '../wire/codec.js'],
    ['src/authority/authority.ts', '../gen/reeve/v1/task_pb.js'],
    ['src/authority/authority.ts', '@grpc/grpc-js'],
    ['src/authority/authority.ts', 'better-sqlite3'],
    ['src/dispatcher/dispatcher.ts', '../services/worker-service.js'],
    ['src/timers/timer-scan.ts', '../dispatcher/dispatcher.js'],
    ['src/wire/codec.ts', '../authority/authority.js'],
    ['src/services/task-service.ts', '../server/config.js'],
    ['src/services/task-service.ts', '../store/sqlite/sqlite-store.js'],
    ['src/server/server.ts', '../cli/main.js'],
    ['src/sdk/client.ts', '../kernel/status.js'],
    ['src/sdk/client.ts', '../lib/deferred.js'],
    ['src/sdk/client.ts', '../embed/authority.js'],
    ['src/server/start-server.ts', '../embed/authority.js'],
    ['src/embed/authority.ts', '../server/start-server.js'],
    ['src/deployment/engine.ts', '../services/worker-service.js'],
    ['src/embed/authority.ts', '../gen/reeve/v1/task_pb.js'],
    ['src/embed/authority.ts', '@grpc/grpc-js'],
    ['src/embed/authority.ts', '@bufbuild/protobuf'],
    ['src/server/server.ts', '../../test/fixture.js'],
    ['src/gen/task_pb.ts', '../kernel/status.js'],
  ])('refuse %s importing %s', (path, specifier) => {
    expect(violationsOf(path, `import { x } from '${specifier}';`)).toHaveLength(1);
  });

  it.each([
    ['src/kernel/decide.ts', './status.js'],
    ['src/kernel/admission/json-text.ts', '../status.js'],
    ['src/store/sqlite/sqlite-store.ts', '../task-store.js'],
    ['src/store/sqlite/sqlite-store.ts', 'better-sqlite3'],
    ['src/store/mysql/mysql-store.ts', 'mysql2/promise'],
    ['src/dispatcher/dispatcher.ts', '../authority/authority.js'],
    ['src/services/task-service.ts', '../wire/codec.js'],
    ['src/sdk/client.ts', '../gen/reeve/v1/task_pb.js'],
    ['src/sdk/client.ts', '@grpc/grpc-js'],
  ])('allow %s importing %s', (path, specifier) => {
    expect(violationsOf(path, `import { x } from '${specifier}';`)).toEqual([]);
  });

  it.each([
    `export { x } from '../sdk/client.js';`,
    `export * from '../sdk/client.js';`,
    `import type { X } from '../sdk/client.js';`,
    `import '../sdk/client.js';`,
    `const x = await import('../sdk/client.js');`,
    `let x: import('../sdk/client.js').X;`,
    `new Worker(new URL('../sdk/client.js', import.meta.url));`,
  ])('see through %s', (text) => {
    expect(violationsOf('src/authority/authority.ts', text)).toHaveLength(1);
  });

  it('let the kernel hash, and take nothing else of node:crypto', () => {
    const path = 'src/kernel/admission/application-hash.ts';
    expect(violationsOf(path, `import { createHash } from 'node:crypto';`)).toEqual([]);
    expect(violationsOf(path, `import { randomBytes } from 'node:crypto';`)).toHaveLength(1);
    expect(violationsOf(path, `import * as crypto from 'node:crypto';`)).toHaveLength(1);
  });

  it('let the port of the store hash with a key too, and take nothing else', () => {
    const path = 'src/store/history-chain.ts';
    expect(violationsOf(path, `import { createHmac, hash } from 'node:crypto';`)).toEqual([]);
    expect(violationsOf(path, `import { randomBytes } from 'node:crypto';`)).toHaveLength(1);
    expect(violationsOf(path, `import { readFileSync } from 'node:fs';`)).toHaveLength(1);
  });

  it('keep the memory store to dev and tests', () => {
    const text = `import { x } from '../store/memory/memory-store.js';`;
    const deeper = `import { x } from '../../store/memory/memory-store.js';`;
    expect(violationsOf('src/server/server.ts', text)).toHaveLength(1);
    expect(violationsOf('src/cli/commands/serve.ts', deeper)).toHaveLength(1);
    expect(violationsOf('src/deployment/open-store.ts', text)).toHaveLength(1);
    expect(violationsOf('src/cli/commands/dev.ts', deeper)).toEqual([]);
    expect(violationsOf('src/embed/open-authority.ts', text)).toEqual([]);
    expect(violationsOf('src/embed/authority.ts', text)).toHaveLength(1);
  });

  it('refuse a folder that the table does not know', () => {
    expect(violationsOf('src/plugins/plugin.ts', '')).toHaveLength(1);
    expect(violationsOf('src/index.ts', '')).toHaveLength(1);
    expect(violationsOf('src/store/postgres/postgres-store.ts', '')).toHaveLength(1);
  });

  it('point one way', () => {
    const below = (layer: string, seen: readonly string[]): string[] =>
      (layerRules[layer]?.layers ?? []).flatMap((next) => {
        if (seen.includes(next)) return [[...seen, next].join(' -> ')];
        return below(next, [...seen, next]);
      });
    expect(Object.keys(layerRules).flatMap((layer) => below(layer, [layer]))).toEqual([]);
  });
});
