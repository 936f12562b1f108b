// Rules on what a file is called and how long it gets.

import { posix } from 'node:path';
import ts from 'typescript';
import { locate, visit, type SourceFile } from './source-file.js';

export const maxLinesPerFile = 400;

// Names that say nothing about the subject, so that anything ends up in them.
const emptyNames = new Set(['util', 'utils', 'helper', 'helpers', 'types', 'common', 'misc']);

export function sizeViolations(path: string, lineCount: number): string[] {
  if (lineCount <= maxLinesPerFile) return [];
  return [`${path} has ${lineCount} lines, over ${maxLinesPerFile}: split it by subject`];
}

export function nameViolations(path: string): string[] {
  const parts = path.split('/');
  const stem = posix.basename(path).split('.')[0] ?? '';
  const empty = [...parts.slice(0, -1), stem].find((name) => emptyNames.has(name.toLowerCase()));
  return empty === undefined ? [] : [`${path}: "${empty}" names no subject`];
}

// A stale x.js beside x.ts is what the tests would import, without saying so.
export function compiledBesideSource(paths: readonly string[]): string[] {
  const sources = new Set(paths.filter((path) => path.endsWith('.ts')));
  return paths
    .filter((path) => path.endsWith('.js') && sources.has(path.replace(/\.js$/, '.ts')))
    .map((path) => `${path} is compiled output beside its source: delete it`);
}

export function defaultExportViolations(file: SourceFile): string[] {
  const violations: string[] = [];
  visit(file.syntax, (node) => {
    const exportsDefault =
      ts.isExportAssignment(node) ||
      (node.kind === ts.SyntaxKind.DefaultKeyword && !ts.isDefaultClause(node.parent)) ||
      (ts.isExportSpecifier(node) && node.name.text === 'default');
    if (exportsDefault) violations.push(`${locate(file, node)} exports a default`);
  });
  return violations;
}
