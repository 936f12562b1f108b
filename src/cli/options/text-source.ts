/**
 * Where a text option gets its text: literally, from a file (`@path`), or from stdin (`-`). Bounded, so that a slip
 * such as `@/dev/zero` ends in a message.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { UsageError } from '../usage-error.js';

/** More than any JSON that Reeve takes (1 MiB), so that the service gives the exact reason. */
export const MAX_TEXT_BYTES = 4 * 1024 * 1024;

/** Throws UsageError. */
export async function readText(source: string, stdin: Readable): Promise<string> {
  if (source === '-') return decode(await readBounded(stdin, 'stdin'), 'stdin');
  if (!source.startsWith('@')) return source;
  const path = source.slice(1);
  try {
    return decode(await readBounded(createReadStream(path), path), path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function readBounded(stream: Readable, name: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_TEXT_BYTES) throw new UsageError(`${name} holds more than ${MAX_TEXT_BYTES} bytes`);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name} is not UTF-8 text`);
  }
}
