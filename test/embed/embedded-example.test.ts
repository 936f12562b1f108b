// The example of the embedded authority runs as its users would run it: against the package's own exports, twice on one
// file.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'reeve-example-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const run = promisify(execFile);

it('counts words, once per key', { timeout: 60_000 }, async () => {
  // Not every Node that Reeve runs on takes types away by itself.
  const example = readFileSync(join(ROOT, 'examples/typescript/embedded.ts'), 'utf8');
  const options = { module: ts.ModuleKind.ES2022, target: ts.ScriptTarget.ES2022 };
  writeFileSync(join(folder, 'embedded.mjs'), ts.transpileModule(example, { compilerOptions: options }).outputText);
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules', 'reeve'));
  const again = () => run(process.execPath, ['embedded.mjs', join(folder, 'tasks.db')], { cwd: folder });

  const first = (await again()).stdout.trim().split('\n');
  expect(first.filter((line) => line.endsWith(': task.completed'))).toHaveLength(2);
  expect(first).toContain('refused: args/text: must be string');
  expect(first.slice(-2)).toEqual(['poem is completed: {"words":8}', 'note is completed: {"words":2}']);

  const second = (await again()).stdout.trim().split('\n');
  expect(second).toEqual([
    'refused: args/text: must be string',
    'poem is completed: {"words":8}',
    'note is completed: {"words":2}',
  ]);
});
