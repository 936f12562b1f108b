/**
 * A program of examples/ as a process: its lines, its end. None outlives the test file that started it.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export class ExampleProcess {
  private static readonly alive = new Set<ExampleProcess>();
  readonly ended: Promise<number | NodeJS.Signals>;
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;
  private said = '';

  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(command, args, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    ExampleProcess.alive.add(this);
    for (const pipe of [this.child.stdout, this.child.stderr])
      pipe.on('data', (text: Buffer) => (this.said += text.toString()));
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        ExampleProcess.alive.delete(this);
        resolve(code ?? signal ?? -1);
      });
    });
  }

  /** Everything it printed, once it has ended well. */
  static async output(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<string> {
    const example = new ExampleProcess(command, args, env);
    const end = await example.ended;
    if (end !== 0) throw new Error(`${[command, ...args].join(' ')} ended with ${end}:\n${example.said}`);
    return example.said;
  }

  static killAll(): void {
    for (const each of ExampleProcess.alive) each.child.kill('SIGKILL');
  }

  /** SIGTERM; resolves with its end. */
  leave(): Promise<number | NodeJS.Signals> {
    this.child.kill('SIGTERM');
    return this.ended;
  }
}
