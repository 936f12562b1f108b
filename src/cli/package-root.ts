/**
 * Where this package lies, as a checkout or installed: the folder above dist/ (or src/).
 */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));

export const packageRoot = resolve(folder, '..', '..');

/** This very program, to be started again with node. */
export const mainModule = join(folder, 'main.js');

/** From package.json; `unknown` when that cannot be read. */
export function packageVersion(): string {
  try {
    const content: unknown = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
    if (typeof content === 'object' && content !== null && 'version' in content) return String(content.version);
  } catch {
    // A bundle without its package.json still has to start.
  }
  return 'unknown';
}
