/**
 * A server of its own process on a SQLite file, for the benchmarks and the chaos runs.
 */
import { type Child, start } from './processes.js';

export interface ServerProcess {
  readonly address: string;
  readonly child: Child;
  /** From the start of the process to its ready line, in ms. */
  readonly readyMs: number;
}

/** Port 0 lets the system choose. */
export async function startServerProcess(storePath: string, port = 0): Promise<ServerProcess> {
  const program = new URL('../../dist/cli/main.js', import.meta.url).pathname;
  const begunAt = performance.now();
  const child = start(program, ['serve', '--listen', `127.0.0.1:${String(port)}`, '--store', `sqlite:${storePath}`]);
  const line = await child.line((text) => text.includes('"msg":"ready"'));
  const readyMs = performance.now() - begunAt;
  return { address: addressOf(line), child, readyMs };
}

function addressOf(line: string): string {
  const parsed: unknown = JSON.parse(line);
  if (typeof parsed === 'object' && parsed !== null && 'address' in parsed && typeof parsed.address === 'string') {
    return parsed.address;
  }
  throw new Error(`no address in the ready line: ${line}`);
}
