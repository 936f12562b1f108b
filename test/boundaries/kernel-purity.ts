// The kernel is values in, values out. Imports alone don't show it: clocks,
// randomness and timers are globals.

import ts from 'typescript';
import { locate, visit, type SourceFile } from './source-file.js';

const impureGlobals = new Set([
  'process',
  'performance',
  'crypto',
  'console',
  'fetch',
  'globalThis',
  'Promise',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
]);

export function purityViolations(file: SourceFile): string[] {
  const violations: string[] = [];
  visit(file.syntax, (node) => {
    const name = impureUse(node);
    if (name !== undefined) violations.push(`${locate(file, node)} uses ${name} in the kernel`);
  });
  return violations;
}

function impureUse(node: ts.Node): string | undefined {
  if (node.kind === ts.SyntaxKind.AsyncKeyword) return 'async';
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date') {
    return node.arguments === undefined || node.arguments.length === 0 ? 'new Date()' : undefined;
  }
  if (ts.isPropertyAccessExpression(node)) {
    const text = node.getText();
    return text === 'Date.now' || text === 'Math.random' ? text : undefined;
  }
  return ts.isIdentifier(node) && impureGlobals.has(node.text) && isReference(node) ? node.text : undefined;
}

// A field or a member that happens to be called `process` is no global.
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isTypeReferenceNode(parent) || ts.isCallExpression(parent)) return true;
  if (ts.isNewExpression(parent)) return true;
  return ts.isExpression(parent) && !ts.isPropertyAccessExpression(parent);
}
