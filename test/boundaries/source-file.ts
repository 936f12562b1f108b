// What the boundary rules know about a file: its imports, its strings, what it
// calls. Read from the syntax tree, so that a comment can't break a rule and a
// line break can't hide from one.

import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';

export interface ImportEdge {
  /** Path from the root without extension (`src/kernel/status`), or the bare specifier. */
  readonly target: string;
  readonly isPackage: boolean;
  /** What is imported by name; `undefined` when all of it is (`* as`, default, `import()`). */
  readonly names: readonly string[] | undefined;
}

export interface SourceFile {
  /** From the root of the repository, with forward slashes. */
  readonly path: string;
  readonly lineCount: number;
  readonly syntax: ts.SourceFile;
  readonly imports: readonly ImportEdge[];
}

// Not written by hand, so not ours to judge.
const skippedFolders = new Set(['src/gen', 'node_modules', 'dist', 'generated', '__pycache__']);

/** Paths of all files below `folder`, hidden and generated ones left out. */
export function listFiles(root: string, folder: string): string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    const skipped = skippedFolders.has(entry.name) || skippedFolders.has(path);
    return skipped || entry.name.startsWith('.') ? [] : listFiles(root, path);
  });
}

export function readSources(root: string, folder: string): SourceFile[] {
  return listFiles(root, folder)
    .filter((path) => /\.[cm]?[jt]s$/.test(path))
    .map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')));
}

export function parseSource(path: string, text: string): SourceFile {
  const syntax = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const imports: ImportEdge[] = [];
  visit(syntax, (node) => {
    const edge = importEdge(path, node);
    if (edge !== undefined) imports.push(edge);
  });
  return { path, lineCount: countLines(text), syntax, imports };
}

export function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  node.forEachChild((child) => {
    visit(child, see);
  });
}

/** `path:line`, which terminals and editors make a link of. */
export function locate(file: SourceFile, node: ts.Node): string {
  const { line } = file.syntax.getLineAndCharacterOfPosition(node.getStart(file.syntax));
  return `${file.path}:${line + 1}`;
}

export function countLines(text: string): number {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.length - 1 : lines.length;
}

function importEdge(path: string, node: ts.Node): ImportEdge | undefined {
  if (ts.isImportDeclaration(node)) {
    return edgeTo(path, node.moduleSpecifier, importedNames(node.importClause));
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    const clause = node.exportClause;
    const names =
      clause !== undefined && ts.isNamedExports(clause)
        ? clause.elements.map((element) => (element.propertyName ?? element.name).text)
        : undefined;
    return edgeTo(path, node.moduleSpecifier, names);
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return edgeTo(path, node.argument.literal, undefined);
  }
  if (ts.isCallExpression(node)) {
    const callee = node.expression;
    const imports =
      callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require');
    return imports ? edgeTo(path, node.arguments[0], undefined) : undefined;
  }
  // new URL('./worker.js', import.meta.url): how a worker thread's file is named.
  if (ts.isNewExpression(node) && node.arguments?.[1]?.getText() === 'import.meta.url') {
    return edgeTo(path, node.arguments[0], undefined);
  }
  return undefined;
}

function importedNames(clause: ts.ImportClause | undefined): readonly string[] | undefined {
  const bindings = clause?.namedBindings;
  if (clause?.name !== undefined || bindings === undefined || !ts.isNamedImports(bindings)) {
    return undefined;
  }
  return bindings.elements.map((element) => (element.propertyName ?? element.name).text);
}

function edgeTo(
  from: string,
  specifier: ts.Node | undefined,
  names: readonly string[] | undefined,
): ImportEdge | undefined {
  if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return undefined;
  const { text } = specifier;
  if (!text.startsWith('.')) return { target: text, isPackage: true, names };
  const target = posix.join(posix.dirname(from), text).replace(/\.[cm]?[jt]s$/, '');
  return { target, isPackage: false, names };
}
