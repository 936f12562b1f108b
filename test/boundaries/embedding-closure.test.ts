// What comes along with `reeve/authority`, from its compiled entry through every import: no transport and no message
// of the wire. The table of directions cannot tell: types are imported from where they are, and are gone when compiled.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSource } from './source-file.js';

const ENTRY = 'dist/embed/authority';

interface Closure {
  readonly files: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
}

function closureOf(entry: string): Closure {
  const files = new Set<string>();
  const packages = new Set<string>();
  const open = [entry];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (files.has(path)) continue;
    files.add(path);
    const file = `${path}.js`;
    for (const { target, isPackage } of parseSource(file, readFileSync(join(process.cwd(), file), 'utf8')).imports) {
      if (isPackage) packages.add(target);
      else open.push(target);
    }
  }
  return { files, packages };
}

describe('what reeve/authority loads', () => {
  const { files, packages } = closureOf(ENTRY);

  it('is the authority and its stores', () => {
    for (const part of [
      'authority/authority',
      'deployment/engine',
      'store/sqlite/sqlite-store',
      'store/memory/memory-store',
    ]) {
      expect(files).toContain(`dist/${part}`);
    }
  });

  it('has no transport, no messages of the wire, no server and no SDK in it', () => {
    expect([...packages].filter((name) => /^@grpc\/|^@bufbuild\/|^grpc-/.test(name))).toEqual([]);
    expect([...files].filter((path) => /^dist\/(gen|sdk|cli)\//.test(path))).toEqual([]);
    expect(files).not.toContain('dist/server/start-server');
  });

  it('would be seen: the server has all of that', () => {
    const server = closureOf('dist/server/start-server');
    expect(server.packages).toContain('@grpc/grpc-js');
    expect([...server.files].some((path) => path.startsWith('dist/gen/'))).toBe(true);
  });
});
