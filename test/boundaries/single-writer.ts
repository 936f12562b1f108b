// Two rules that keep one writer of lifecycle state: SQL that writes its tables is
// found in store adapters only, and only a composition root makes an authority.

import ts from 'typescript';
import { locate, visit, type SourceFile } from './source-file.js';

export const lifecycleTables = [
  'tasks',
  'task_keys',
  'applications',
  'history',
  'intent_keys',
  'sessions',
  'routes',
  'meta',
  'children',
  'dependencies',
  'family_counts',
  'propagations',
  'tombstones',
  'purging',
  'operations',
  'permits',
  'permit_rows',
  'permit_lines',
];

const adapterFile = /^src\/store\/[^/]+\/.+/;
/** Where a process is composed: of the server and the embedding library alike, in one file. */
const authorityMaker = /^src\/(authority\/|deployment\/engine\.ts$)/;

// A table whose name is computed may be any table, so it counts as one of them.
const computed = '${}';
const table = `["\`\\[]?(?:\\w+["\`\\]]?\\.["\`\\[]?)?(?:(?:${lifecycleTables.join('|')})\\b|\\$\\{\\})`;
const writes = [
  `INSERT\\s+(?:(?:OR\\s+\\w+|IGNORE)\\s+)?INTO\\s+${table}`,
  `REPLACE\\s+INTO\\s+${table}`,
  `UPDATE\\s+(?:(?:OR\\s+\\w+|IGNORE)\\s+)?${table}[\\s\\S]*?\\bSET\\b`,
  `DELETE\\s+(?:\\w+\\s+)?FROM\\s+${table}`,
  `TRUNCATE\\s+(?:TABLE\\s+)?${table}`,
  `(?:DROP|ALTER)\\s+TABLE\\s+(?:IF\\s+EXISTS\\s+)?${table}`,
].map((statement) => new RegExp(`\\b${statement}`, 'i'));

export function sqlViolations(file: SourceFile): string[] {
  if (adapterFile.test(file.path)) return [];
  const violations: string[] = [];
  visit(file.syntax, (node) => {
    const text = stringValue(node);
    if (text !== undefined && writes.some((write) => write.test(text))) {
      violations.push(`${locate(file, node)} writes a lifecycle table outside a store adapter`);
    }
  });
  return violations;
}

export function authorityViolations(file: SourceFile): string[] {
  if (authorityMaker.test(file.path)) return [];
  const violations: string[] = [];
  visit(file.syntax, (node) => {
    if (makesAuthority(node)) violations.push(`${locate(file, node)} makes an authority`);
  });
  return violations;
}

function makesAuthority(node: ts.Node): boolean {
  if (ts.isNewExpression(node)) return /^\w*Authority$/.test(calleeName(node.expression));
  if (!ts.isCallExpression(node)) return false;
  const { expression } = node;
  // Authority.open(…): its constructor is private.
  const factory = ts.isPropertyAccessExpression(expression) && /^\w*Authority$/.test(calleeName(expression.expression));
  if (factory && ts.isIdentifier(expression.expression)) return true;
  return /^(open|create|make|build|start)\w*Authority$/.test(calleeName(expression));
}

function calleeName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text;
  return ts.isPropertyAccessExpression(callee) ? callee.name.text : '';
}

function stringValue(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  const spans = node.templateSpans.map((span) => computed + span.literal.text);
  return node.head.text + spans.join('');
}
