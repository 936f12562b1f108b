/**
 * A program of a test as a process: its JSON lines as they come, and its end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Incoming } from './incoming.js';

export interface ProcessLine {
  readonly type: string;
  readonly error?: string;
  readonly left?: readonly string[];
}

export class ProcessLines {
  readonly lines = new Incoming<ProcessLine>();
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  private readonly child: ChildProcess;

  /** @param stdin what it reads. */
  constructor(args: readonly string[], stdin: string, env: Readonly<Record<string, string>> = {}) {
    const child = spawn(process.execPath, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    this.child = child;
    child.stdin.end(stdin);
    createInterface({ input: child.stdout }).on('line', (line) => {
      // `--print` prints what it has evaluated as well.
      if (line.startsWith('{')) this.lines.push(JSON.parse(line) as ProcessLine);
    });
    this.ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  }

  next(type: string): Promise<ProcessLine> {
    return this.lines.find((line) => line.type === type);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
