/**
 * One child program in a process group of its own: started, fed, stopped and swept up, grandchildren included. Nothing
 * of it outlives the attempt, except what leaves the group on purpose (setsid) and holds no pipe of ours.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

/** What may wait for a child that does not read its stdin; more is dropped. */
export const MAX_STDIN_BACKLOG_BYTES = 64 * 1_024;
/** How long after the program's end its pipes may stay open in somebody else's hands. */
const PIPES_AFTER_EXIT_MS = 2_000;

export interface ChildExit {
  /** Undefined when a signal ended it, or when it could not be started. */
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** Set when it could not be started. */
  readonly startFailure: string | undefined;
}

export interface ChildOptions {
  /** Run by `/bin/sh -c`. */
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

const running = new Set<ChildGroup>();

export class ChildGroup {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Its end; by then both pipes are at their end too, or were cut off. Never rejects. */
  readonly ended: Promise<ChildExit>;
  private readonly child: ChildProcess;
  private readonly pipesClosed: Promise<unknown>;
  private killTimer: NodeJS.Timeout | undefined;
  /** Resolves when the grace of a stop is over; undefined: it was not stopped. */
  private killed: Promise<void> | undefined;
  private over = false;

  constructor({ command, env }: ChildOptions) {
    // Its own process group: a signal reaches all of a pipeline, and Ctrl-C at the worker is the worker's to handle.
    const child = spawn(command, { shell: true, detached: true, stdio: 'pipe', env: { ...process.env, ...env } });
    this.child = child;
    this.stdout = child.stdout;
    this.stderr = child.stderr;
    // A program need not read: EPIPE is its good right.
    child.stdin.on('error', () => undefined);
    running.add(this);
    this.pipesClosed = Promise.all([closed(child.stdout), closed(child.stderr)]);
    this.ended = this.end();
  }

  /** One line to stdin; false when it was dropped because the program does not read. */
  writeLine(line: string): boolean {
    const { stdin } = this.child;
    if (stdin === null || !stdin.writable || stdin.writableLength > MAX_STDIN_BACKLOG_BYTES) return false;
    stdin.write(`${line}\n`);
    return true;
  }

  closeStdin(): void {
    this.child.stdin?.end();
  }

  /** SIGTERM now, SIGKILL after `graceMs` if it is still there. */
  stop(graceMs: number): void {
    if (this.over) return;
    this.signalGroup('SIGTERM');
    clearTimeout(this.killTimer);
    this.killed = new Promise((resolve) => {
      this.killTimer = setTimeout(() => {
        this.kill();
        resolve();
      }, graceMs);
    });
  }

  kill(): void {
    this.signalGroup('SIGKILL');
  }

  private async end(): Promise<ChildExit> {
    const { child } = this;
    const exit = await new Promise<ChildExit>((resolve) => {
      child.once('error', (error) => resolve({ code: undefined, signal: undefined, startFailure: error.message }));
      child.once('exit', (code, signal) =>
        resolve({ code: code ?? undefined, signal: signal ?? undefined, startFailure: undefined }),
      );
    });
    child.stdin?.destroy();
    // The shell may be gone before what it runs has heard SIGTERM out: those who still hold the pipes get their grace.
    if (this.killed !== undefined) await Promise.race([this.pipesClosed, this.killed]);
    // What is left in the group belongs to an attempt that is over.
    this.kill();
    this.over = true;
    clearTimeout(this.killTimer);
    running.delete(this);
    const cut = setTimeout(() => {
      for (const pipe of [child.stdout, child.stderr]) pipe?.destroy();
    }, PIPES_AFTER_EXIT_MS);
    await this.pipesClosed;
    clearTimeout(cut);
    return exit;
  }

  private signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined || this.over) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // ESRCH: nobody is left in the group.
    }
  }
}

function closed(pipe: Readable): Promise<void> {
  return new Promise((resolve) => pipe.once('close', resolve));
}

/** For the end of the worker itself: no child may be left behind. Synchronous, safe in `process.on('exit')`. */
export function killRunningChildren(): void {
  for (const child of running) child.kill();
}
