/**
 * Child processes of the benchmarks: the server, a producer and a worker, each on its own, as in life.
 * They talk to the bench in single lines: `ready …`, then `{json}` results.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Child {
  readonly process: ChildProcess;
  /** The next line that the test accepts; rejects when the process ends first. */
  line(accept: (line: string) => boolean): Promise<string>;
  stop(): Promise<void>;
}

export function start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const waiting = new Set<{ accept: (line: string) => boolean; resolve: (line: string) => void }>();
  const early: string[] = [];
  const onLine = (line: string): void => {
    for (const waiter of waiting) {
      if (!waiter.accept(line)) continue;
      waiting.delete(waiter);
      return waiter.resolve(line);
    }
    early.push(line);
  };
  createInterface({ input: child.stdout }).on('line', onLine);
  createInterface({ input: child.stderr }).on('line', (line) => {
    // Logs are JSON lines; anything else on this channel is a complaint that somebody should see.
    if (line.startsWith('{')) onLine(line);
    else console.error(line);
  });
  const exited = once(child, 'exit');
  return {
    process: child,
    line(accept) {
      const found = early.findIndex(accept);
      if (found >= 0) return Promise.resolve(early.splice(found, 1)[0] ?? '');
      return new Promise((resolve, reject) => {
        waiting.add({ accept, resolve });
        void exited.then(() => reject(new Error(`${program} ended before it said what was awaited`)));
      });
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

export function besideMe(metaUrl: string, file: string): string {
  return fileURLToPath(new URL(file, metaUrl));
}
