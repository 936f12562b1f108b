// worker-child.mjs as a process, and what it tells.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Incoming } from '../sdk/incoming.js';

const PROGRAM = fileURLToPath(new URL('worker-child.mjs', import.meta.url));

export interface WorkerProcessOptions {
  readonly address: string;
  readonly name: string;
  readonly ttlMs?: number;
  readonly drainGraceMs?: number;
  readonly queues?: readonly string[];
  readonly unary?: { readonly taskId: string; readonly ttlMs: number; readonly ms: number };
}

export interface Told {
  readonly type: string;
  readonly taskId?: string;
  readonly epoch?: number;
  readonly refused?: string;
  readonly resumed?: boolean;
}

export class WorkerProcess {
  readonly told = new Incoming<Told>();
  readonly exited: Promise<number | NodeJS.Signals>;

  private constructor(private readonly child: ChildProcess) {
    if (child.stdout !== null) {
      createInterface({ input: child.stdout }).on('line', (line) => this.told.push(JSON.parse(line) as Told));
    }
    // A test that ran out of time never comes to its end.
    const killNow = (): void => void child.kill('SIGKILL');
    process.once('exit', killNow);
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal ?? -1)));
    void this.exited.then(() => process.off('exit', killNow));
  }

  static start(options: WorkerProcessOptions): WorkerProcess {
    const args = [PROGRAM, JSON.stringify(options)];
    return new WorkerProcess(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
  }

  /** The next thing of that type. */
  tells(type: string): Promise<Told> {
    return this.told.find((told) => told.type === type);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
