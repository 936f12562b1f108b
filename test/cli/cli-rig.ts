// The program as users run it: a process with arguments, output and an exit code; and a service to talk to.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** The build; REEVE_MAIN tests another one, an installed package for example. */
const main = resolve(process.env['REEVE_MAIN'] ?? 'dist/cli/main.js');

export interface Finished {
  /** The exit code, or the signal that ended it. */
  readonly end: number | NodeJS.Signals;
  readonly out: string;
  readonly err: string;
}

export class Cli {
  private static readonly alive = new Set<Cli>();
  readonly finished: Promise<Finished>;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly lines: string[] = [];
  private readonly waiting = new Set<() => void>();
  private over = false;

  private constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    // A variable of whoever runs the tests must not decide what they see.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('REEVE_'));
    this.child = spawn(process.execPath, [main, ...args], {
      stdio: 'pipe',
      env: { ...Object.fromEntries(inherited), ...env },
    });
    Cli.alive.add(this);
    const out = this.collect(this.child.stdout);
    const err = this.collect(this.child.stderr);
    this.child.stdin.on('error', () => undefined);
    this.finished = new Promise((settle) => {
      this.child.once('close', (code, signal) => {
        this.over = true;
        Cli.alive.delete(this);
        settle({ end: code ?? signal ?? -1, out: out(), err: err() });
        for (const look of this.waiting) look();
      });
    });
  }

  static start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Cli {
    return new Cli(args, env);
  }

  static run(args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    const cli = new Cli(args, env);
    cli.child.stdin.end(input);
    return cli.finished;
  }

  static killAll(): void {
    for (const cli of Cli.alive) cli.child.kill('SIGKILL');
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** As `| tee` does when it goes first. */
  closeOutputs(): void {
    this.child.stdout.destroy();
    this.child.stderr.destroy();
  }

  /** The first line of either output that matches; rejects when the program ends without one. */
  line(pattern: RegExp): Promise<string> {
    return new Promise((settle, reject) => {
      const look = () => {
        const found = this.lines.find((line) => pattern.test(line));
        if (found === undefined && !this.over) return;
        this.waiting.delete(look);
        if (found !== undefined) settle(found);
        else reject(new Error(`no line matches ${String(pattern)} in:\n${this.lines.join('\n')}`));
      };
      this.waiting.add(look);
      look();
    });
  }

  private collect(stream: Readable): () => string {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    createInterface({ input: stream }).on('line', (line) => {
      this.lines.push(line);
      for (const look of this.waiting) look();
    });
    return () => Buffer.concat(chunks).toString('utf8');
  }
}

export interface Service {
  readonly address: string;
  readonly process: Cli;
  /** Runs a command against it. */
  readonly reeve: (...args: readonly string[]) => Promise<Finished>;
  /** Drains it and removes its file. */
  readonly close: () => Promise<Finished>;
}

/** A real service on a fresh SQLite file. */
export async function startService(...flags: readonly string[]): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'reeve-cli-test-'));
  const store = `sqlite:${join(folder, 'reeve.db')}`;
  const server = Cli.start(['serve', '--listen', '127.0.0.1:0', '--store', store, '--drain-grace', '2s', ...flags]);
  const ready = JSON.parse(await server.line(/"msg":"ready"/)) as { readonly address: string };
  return {
    address: ready.address,
    process: server,
    reeve: (...args) => Cli.run(['--address', ready.address, ...args]),
    close: async () => {
      server.signal('SIGTERM');
      const finished = await server.finished;
      rmSync(folder, { recursive: true, force: true });
      return finished;
    },
  };
}

/** One JSON line, or the only one. */
export function parsed(text: string): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

export function jsonLines(text: string): readonly Record<string, unknown>[] {
  return text.trimEnd().split('\n').map(parsed);
}
