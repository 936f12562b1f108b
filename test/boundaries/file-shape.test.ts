import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  compiledBesideSource,
  defaultExportViolations,
  maxLinesPerFile,
  nameViolations,
  sizeViolations,
} from './file-shape.js';
import { countLines, listFiles, parseSource, readSources } from './source-file.js';

const root = process.cwd();
const writtenByHand = /\.([cm]?[jt]sx?|sql|py|go|sh)$/;
// Stubs that a developer has generated for the examples.
const generated = /^examples\/[^/]+\/(reeve|gen)\//;
const files = ['src', 'test', 'bench', 'scripts', 'examples']
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) => listFiles(root, folder))
  .filter((path) => writtenByHand.test(path) && !generated.test(path));

describe('files', () => {
  it(`stay within ${maxLinesPerFile} lines`, () => {
    const violations = files.flatMap((path) =>
      sizeViolations(path, countLines(readFileSync(join(root, path), 'utf8'))),
    );
    expect(violations).toEqual([]);
  });

  it('one line too many is caught', () => {
    const text = 'x;\n'.repeat(maxLinesPerFile);
    expect(sizeViolations('src/lib/long.ts', countLines(text))).toEqual([]);
    expect(sizeViolations('src/lib/long.ts', countLines(`${text}x;`))).toHaveLength(1);
  });

  it('have names with a subject', () => {
    expect(files.flatMap(nameViolations)).toEqual([]);
  });

  it.each(['src/lib/utils.ts', 'test/helpers.test.ts', 'src/common/clock.ts', 'bench/types.d.ts'])(
    '%s is caught',
    (path) => {
      expect(nameViolations(path)).toHaveLength(1);
    },
  );

  it('a subject that contains such a word is fine', () => {
    expect(nameViolations('src/kernel/event-types-table.ts')).toEqual([]);
  });
});

describe('compiled output', () => {
  it('does not lie beside its source', () => {
    expect(compiledBesideSource(files)).toEqual([]);
  });

  it('beside its source is caught', () => {
    const paths = ['src/kernel/fold.ts', 'src/kernel/fold.js', 'eslint.config.js'];
    expect(compiledBesideSource(paths)).toHaveLength(1);
  });
});

describe('default exports', () => {
  it('do not occur in src', () => {
    expect(readSources(root, 'src').flatMap(defaultExportViolations)).toEqual([]);
  });

  it.each([
    'export default 1;',
    'export default function decide() {}',
    'export default class Store {}',
    'const x = 1; export { x as default };',
    `export { default } from './x.js';`,
  ])('%s is caught', (text) => {
    expect(defaultExportViolations(parseSource('src/lib/x.ts', text))).toHaveLength(1);
  });

  it('a default clause and a default import are no default export', () => {
    const text = `import Database from 'better-sqlite3'; switch (x) { default: y(); }`;
    expect(defaultExportViolations(parseSource('src/lib/x.ts', text))).toEqual([]);
  });
});
