/**
 * `reeve serve` as a process of its own, on a port that stays the same over restarts, to be killed without mercy.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export class ServerProcess {
  private child: ChildProcess | null = null;

  /** Port 0: the first start chooses, later ones keep it. */
  constructor(
    private readonly storePath: string,
    private port = 0,
  ) {}

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Resolves with the ready line; rejects with what the server said when it ended instead. */
  async start(): Promise<void> {
    const args = ['serve', '--listen', this.address, '--store', `sqlite:${this.storePath}`];
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
    this.child = child;
    const said: string[] = [];
    const address = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        said.push(line);
        const ready = /"address":"([^"]+)".*"msg":"ready"/.exec(line)?.[1];
        if (ready !== undefined) resolve(ready);
      });
      child.once('exit', () => reject(new Error(`the server ended before it was ready:\n${said.join('\n')}`)));
    });
    this.port = Number(address.slice(address.lastIndexOf(':') + 1));
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { child } = this;
    if (child === null || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    this.child = null;
  }
}
