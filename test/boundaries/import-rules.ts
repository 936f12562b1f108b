// The one table of who may import whom. Everything not in it is forbidden: a new
// folder under src/ is a decision, and is made here.

import type { ImportEdge, SourceFile } from './source-file.js';

interface LayerRule {
  /** Layers that it may import besides itself. */
  readonly layers: readonly string[];
  /** Packages and node: modules that it may import; `any` leaves `packageOwners` in force. */
  readonly packages: readonly string[] | 'any';
}

const inside = ['kernel', 'store', 'lib'];
const engines = ['authority', 'audit', 'dispatcher', 'timers', 'scheduler', 'outbox'];
const adapters = ['store/memory', 'store/sqlite', 'store/mysql'];
const edge = ['gen', 'wire', 'services'];

export const layerRules: Readonly<Record<string, LayerRule>> = {
  kernel: { layers: [], packages: ['node:crypto'] },
  lib: { layers: [], packages: 'any' },
  gen: { layers: [], packages: ['@bufbuild/protobuf'] },
  store: { layers: ['kernel', 'lib'], packages: ['node:crypto'] },
  'store/memory': { layers: inside, packages: ['node:'] },
  'store/sqlite': { layers: inside, packages: ['node:', 'better-sqlite3'] },
  'store/mysql': { layers: inside, packages: ['node:', 'mysql2'] },
  authority: { layers: inside, packages: 'any' },
  audit: { layers: ['authority', ...inside], packages: 'any' },
  dispatcher: { layers: ['authority', ...inside], packages: 'any' },
  timers: { layers: ['authority', ...inside], packages: 'any' },
  scheduler: { layers: ['authority', ...inside], packages: 'any' },
  outbox: { layers: ['authority', ...inside], packages: 'any' },
  wire: { layers: ['gen', ...inside], packages: 'any' },
  services: { layers: ['gen', 'wire', ...engines, ...inside], packages: 'any' },
  // What a deployment says, and the engine that is made of it; whatever stands in front.
  deployment: { layers: [...engines, ...inside, ...adapters], packages: 'any' },
  // Of wire and services the parts that know no message: embedding-closure.test.ts proves that no transport comes along.
  embed: { layers: ['deployment', 'services', 'wire', ...engines, ...inside, ...adapters], packages: 'any' },
  server: { layers: ['deployment', ...edge, ...engines, ...inside, ...adapters], packages: 'any' },
  conformance: { layers: ['gen'], packages: 'any' },
  cli: {
    layers: ['deployment', 'server', 'embed', 'sdk', 'conformance', ...edge, ...engines, ...inside, ...adapters],
    packages: 'any',
  },
  sdk: { layers: ['gen'], packages: 'any' },
};

// Packages that only some layers may know: a driver belongs to its adapter, and
// nothing inside may learn which transport it is called through.
const transportLayers = ['gen', 'wire', 'services', 'server', 'conformance', 'cli', 'sdk'];
export const packageOwners: Readonly<Record<string, readonly string[]>> = {
  'better-sqlite3': ['store/sqlite'],
  mysql2: ['store/mysql'],
  '@grpc/grpc-js': transportLayers,
  '@grpc/reflection': ['server'],
  '@bufbuild/protobuf': transportLayers,
  commander: ['cli'],
  ajv: ['deployment'],
  re2js: ['deployment'],
};

// The kernel hashes applications, the store's port the rows of histories. A hash is a pure function of its
// input; the rest of node:crypto (random bytes, keys) is not.
const pureBuiltins: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  kernel: { 'node:crypto': ['createHash'] },
  store: { 'node:crypto': ['createHmac', 'hash'] },
};

// The memory store forgets everything at exit, so no ordinary start may reach it: only who asks for it by name.
const memoryStoreImporters = [
  /^src\/store\/memory\//,
  /^src\/cli\/commands\/dev\.ts$/,
  /^src\/embed\/open-authority\.ts$/,
];

export function layerOf(path: string): string | undefined {
  const [root, layer, ...rest] = path.split('/');
  if (root !== 'src' || layer === undefined || rest.length === 0) return undefined;
  return layer === 'store' && rest.length > 1 ? `store/${rest[0]}` : layer;
}

export function importViolations(file: SourceFile): string[] {
  const layer = layerOf(file.path);
  const rule = layer === undefined ? undefined : layerRules[layer];
  if (layer === undefined || rule === undefined) {
    return [`${file.path} belongs to no layer of test/boundaries/import-rules.ts`];
  }
  return file.imports
    .filter((edge) =>
      edge.isPackage
        ? !packageAllowed(layer, rule, edge)
        : !layerAllowed(layer, rule, edge) || !memoryStoreAllowed(file.path, edge),
    )
    .map((edge) => `${file.path} (${layer}) must not import ${describe(edge)}`);
}

function layerAllowed(layer: string, rule: LayerRule, edge: ImportEdge): boolean {
  const target = layerOf(edge.target);
  return target !== undefined && (target === layer || rule.layers.includes(target));
}

function memoryStoreAllowed(path: string, edge: ImportEdge): boolean {
  return layerOf(edge.target) !== 'store/memory' || memoryStoreImporters.some((importer) => importer.test(path));
}

function packageAllowed(layer: string, rule: LayerRule, edge: ImportEdge): boolean {
  const name = packageName(edge.target);
  if (packageOwners[name]?.includes(layer) === false) return false;
  if (rule.packages === 'any') return true;
  const listed = rule.packages.some((allowed) => (allowed === 'node:' ? name.startsWith(allowed) : name === allowed));
  const builtins = pureBuiltins[layer];
  if (!listed || builtins === undefined) return listed;
  const pure = builtins[name] ?? [];
  return edge.names !== undefined && edge.names.every((imported) => pure.includes(imported));
}

function packageName(specifier: string): string {
  const parts = specifier.split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}

function describe(edge: ImportEdge): string {
  const names = edge.isPackage && edge.names !== undefined ? ` { ${edge.names.join(', ')} }` : '';
  return `${edge.target}${names}`;
}
