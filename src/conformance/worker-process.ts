/**
 * The worker program under test, as a process group of its own: started with the address, asked to leave by SIGTERM,
 * and never left behind.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { ADDRESS_PLACEHOLDER, ADDRESS_VARIABLE } from './kit-contract.js';

export type ProcessEnd = number | NodeJS.Signals;

/** Of what the program prints: enough for a stack trace. */
const TAIL_CHARACTERS = 4_096;
/** SIGTERM goes to the whole group: the shell waits for the worker and ends with its exit code. */
const SURVIVE_TERM = 'trap : TERM';

export class WorkerProcess {
  private static readonly alive = new Set<WorkerProcess>();
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<ProcessEnd>;
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;
  private tail = '';

  constructor(command: string, address: string) {
    const line = command.replaceAll(ADDRESS_PLACEHOLDER, address);
    this.child = spawn('/bin/sh', ['-c', `${SURVIVE_TERM}\n${line}\nexit $?`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, [ADDRESS_VARIABLE]: address },
    });
    WorkerProcess.alive.add(this);
    for (const pipe of [this.child.stdout, this.child.stderr]) {
      pipe.setEncoding('utf8');
      pipe.on('data', (text: string) => (this.tail = (this.tail + text).slice(-TAIL_CHARACTERS)));
    }
    this.ended = new Promise((resolve) => {
      this.child.once('error', () => resolve(127));
      this.child.once('exit', (code, signal) => resolve(code ?? signal ?? 1));
    });
    void this.ended.then(() => WorkerProcess.alive.delete(this));
  }

  /** For the end of this process; synchronous. */
  static killAll(): void {
    for (const each of WorkerProcess.alive) each.signal('SIGKILL');
  }

  /** The process group. */
  get group(): number {
    return this.child.pid ?? 0;
  }

  /** What it printed last. */
  get lastWords(): string {
    return this.tail.trim();
  }

  askToLeave(): void {
    this.signal('SIGTERM');
  }

  /** Ends what is left of it, whether or not its first process has ended. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended;
  }

  private signal(signal: NodeJS.Signals): void {
    if (this.group === 0) return;
    try {
      process.kill(-this.group, signal);
    } catch {
      // The group has ended by itself.
    }
  }
}
