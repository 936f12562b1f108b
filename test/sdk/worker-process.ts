/**
 * blocking-worker.mjs as tests hold it: its lines as they come, and its end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from '../../src/sdk/worker.js';
import { Incoming } from './incoming.js';

const PROGRAM = fileURLToPath(new URL('./blocking-worker.mjs', import.meta.url));

export interface Line {
  readonly type: string;
  readonly taskId?: string;
  readonly epoch?: number;
  readonly attempt?: number;
  readonly error?: string;
  readonly why?: string;
  readonly silentMs?: number;
  readonly message?: string;
}

type PlainOptions = Pick<WorkerOptions<object>, 'slots' | 'ttlMs' | 'renewal' | 'wedgedAfterMs'>;

export class WorkerProcess {
  readonly lines = new Incoming<Line>();
  /** Its exit code, or null for a signal. */
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  /** @param env REEVE_SDK_WORKER names another build of the worker. */
  constructor(address: string, name: string, options: PlainOptions, env: Readonly<Record<string, string>> = {}) {
    const args = [PROGRAM, address, name, JSON.stringify(options)];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    this.child = child;
    createInterface({ input: child.stdout }).on('line', (line) => this.lines.push(JSON.parse(line) as Line));
    this.ended = once(child, 'exit').then(([code]) => code as number | null);
  }

  /** The next line of this type; others on the way are passed over. */
  next(type: string): Promise<Line> {
    return this.lines.find((line) => line.type === type);
  }

  said(type: string): readonly Line[] {
    return this.lines.all.filter((line) => line.type === type);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.child.kill(signal);
    return this.ended;
  }
}
