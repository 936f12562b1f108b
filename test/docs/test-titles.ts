/**
 * The titles of the tests as they stand in the files: what a table of rules may point at. Reads source, runs nothing.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const SUITES = /(\.test|-contract)\.ts$/;
const TITLED = new Set(['describe', 'it', 'test']);

/** Every `file › title` below a folder of tests, a template as it is written. */
export function testTitles(root: string): ReadonlySet<string> {
  const titles = new Set<string>();
  for (const file of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!SUITES.test(file)) continue;
    const path = file.replaceAll('\\', '/');
    for (const title of titlesOf(readFileSync(join(root, file), 'utf8'))) titles.add(`${path} › ${title}`);
  }
  return titles;
}

function titlesOf(source: string): readonly string[] {
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    const title = ts.isCallExpression(node) ? titleOf(node) : null;
    if (title !== null) titles.push(title);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('test.ts', source, ts.ScriptTarget.Latest, true));
  return titles;
}

/** Of `it('…')` and of `it.each(rows)('…')`. */
function titleOf(call: ts.CallExpression): string | null {
  const callee = ts.isCallExpression(call.expression) ? call.expression.expression : call.expression;
  const [name = ''] = callee.getText().split('.');
  const [title] = call.arguments;
  if (!TITLED.has(name) || title === undefined) return null;
  if (ts.isStringLiteralLike(title)) return title.text;
  return ts.isTemplateExpression(title) ? title.getText().slice(1, -1) : null;
}
