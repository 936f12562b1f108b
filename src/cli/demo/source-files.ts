/**
 * The demo's real input: the source files of this package, and what is counted in one. The worker and the check at the
 * end count separately with the same few lines.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { packageRoot } from '../package-root.js';

/** Enough to be busy with, few enough to read back one by one. */
const MAX_FILES = 300;
/** Small, so that even a source file is read in several steps. */
const CHUNK_BYTES = 4 * 1_024;

export interface SourceFile {
  /** Relative to the root, with slashes. */
  readonly path: string;
  readonly bytes: number;
  /** When it was last written, epoch ms. */
  readonly writtenMs: number;
}

export interface SourceTree {
  readonly root: string;
  readonly files: readonly SourceFile[];
}

export interface FileCount {
  readonly path: string;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
  readonly sha256: string;
}

/** TypeScript of a checkout, JavaScript of an installed package, else whatever sources lie in the working directory. */
export function findSources(): SourceTree {
  const candidates = [
    { root: packageRoot, folder: 'src', ending: /\.ts$/ },
    { root: packageRoot, folder: 'dist', ending: /\.js$/ },
    { root: process.cwd(), folder: '.', ending: /\.(ts|js|mjs|py|go|rs|java|md|txt)$/ },
  ];
  for (const { root, folder, ending } of candidates) {
    const files = listFiles(root, folder, ending);
    if (files.length > 0) return { root, files };
  }
  throw new Error(`no source files in ${packageRoot} or ${process.cwd()}`);
}

function listFiles(root: string, folder: string, ending: RegExp): readonly SourceFile[] {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter(
        (entry) =>
          entry.isFile() &&
          ending.test(entry.name) &&
          !/node_modules|(^|[/\\])\../.test(relative(root, entry.parentPath)),
      )
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => describeFile(root, relative(root, path).replaceAll('\\', '/')))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .slice(0, MAX_FILES);
  } catch {
    return [];
  }
}

export function describeFile(root: string, path: string): SourceFile {
  const { size, mtimeMs } = statSync(join(root, path));
  return { path, bytes: size, writtenMs: mtimeMs };
}

/** Reads one file piece by piece. `onProgress` is told the share that is read, and awaited. */
export async function countFile(
  root: string,
  path: string,
  onProgress: (share: number) => Promise<void> = async () => undefined,
): Promise<FileCount> {
  const absolute = join(root, path);
  const size = statSync(absolute).size;
  const hash = createHash('sha256');
  let bytes = 0;
  let lines = 0;
  let words = 0;
  let inWord = false;
  for await (const chunk of createReadStream(absolute, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
    for (const byte of chunk) {
      if (byte === 0x0a) lines += 1;
      const isSpace = byte <= 0x20;
      if (!isSpace && !inWord) words += 1;
      inWord = !isSpace;
    }
    await onProgress(Math.min(1, bytes / size));
  }
  return { path, bytes, lines, words, sha256: hash.digest('hex') };
}
