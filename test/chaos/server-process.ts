/**
 * `reeve serve` as a process of its own, on a port that stays the same over restarts, to be stopped, continued and
 * killed without mercy. Everything it says is kept.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export class ServerProcess {
  /** Its log, and what else it said, over all its lives. */
  readonly said: string[] = [];
  private child: ChildProcess | null = null;
  private port = 0;

  /** The first start chooses a port, later ones keep it. */
  constructor(
    private readonly storePath: string,
    private readonly flags: readonly string[] = [],
  ) {}

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get alive(): boolean {
    return this.child?.exitCode === null && this.child.signalCode === null;
  }

  /** Log lines of level error and above, and whatever is no log line at all: an unhandled rejection, for example. */
  get complaints(): readonly string[] {
    return this.said.filter((line) => !/^\{"level":"?(trace|debug|info|warn|[1-4]0)\b/.test(line));
  }

  /** Memory that is its own at this moment. Linux tells it. */
  get residentBytes(): number {
    const status = readFileSync(`/proc/${this.child?.pid ?? 'self'}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
  }

  /** Resolves with the ready line; rejects with what the server said when it ended instead. */
  async start(): Promise<void> {
    const args = ['serve', '--listen', this.address, '--store', `sqlite:${this.storePath}`, ...this.flags];
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    // A test that ran out of time never comes to its end.
    const killNow = (): void => void child.kill('SIGKILL');
    process.once('exit', killNow);
    child.once('exit', () => process.off('exit', killNow));
    const from = this.said.length;
    const address = await new Promise<string>((resolve, reject) => {
      const hear = (line: string): void => {
        this.said.push(line);
        const ready = /"address":"([^"]+)".*"msg":"ready"/.exec(line)?.[1];
        if (ready !== undefined) resolve(ready);
      };
      createInterface({ input: child.stdout }).on('line', hear);
      createInterface({ input: child.stderr }).on('line', hear);
      child.once('exit', () => {
        const words = this.said.slice(from).join('\n');
        reject(new Error(`the server ended before it was ready:\n${words}`));
      });
    });
    this.port = Number(address.slice(address.lastIndexOf(':') + 1));
  }

  /** Does not wait for anything. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.child?.kill(signal);
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { child } = this;
    if (child === null || !this.alive) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    this.child = null;
  }
}
