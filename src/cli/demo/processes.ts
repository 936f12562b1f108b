/**
 * The demo's processes: a real `reeve serve` and real workers, each its own process. None is left behind, however the
 * demo ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { dirname, join } from 'node:path';
import { TextTail } from '../exec/text-tail.js';
import { mainModule } from '../package-root.js';
import { COUNT_KIND, STEPS_KIND } from './demo-tasks.js';

const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 10_000;
const LOG_TAIL_BYTES = 4 * 1_024;

export class DemoProcess {
  private static readonly alive = new Set<DemoProcess>();
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  private readonly log = new TextTail(LOG_TAIL_BYTES);
  private over = false;

  private constructor(
    readonly name: string,
    private readonly child: ChildProcess,
  ) {
    DemoProcess.alive.add(this);
    for (const pipe of [child.stdout, child.stderr]) pipe?.on('data', (chunk: Buffer) => this.log.push(chunk));
    this.ended = new Promise((resolve) => {
      child.once('error', () => resolve(1));
      child.once('exit', (code, signal) => resolve(code ?? signal ?? 1));
    });
    void this.ended.then(() => {
      this.over = true;
      DemoProcess.alive.delete(this);
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get running(): boolean {
    return !this.over;
  }

  /** A fresh service on a free port; resolves with its address when it says that it is ready. */
  static async startServer(store: string, listen: string): Promise<{ process: DemoProcess; address: string }> {
    const args = ['serve', '--listen', listen, '--store', store, '--action-kinds', `${COUNT_KIND},${STEPS_KIND}`];
    const started = DemoProcess.start('the service', [
      mainModule,
      ...args,
      '--log-level',
      'info',
      '--drain-grace',
      '3s',
    ]);
    const address = await started.waitForLine('stdout', (line) => {
      const entry: unknown = JSON.parse(line);
      const isReady = typeof entry === 'object' && entry !== null && 'msg' in entry && entry.msg === 'ready';
      return isReady && 'address' in entry && typeof entry.address === 'string' ? entry.address : undefined;
    });
    return { process: started, address };
  }

  /** A worker; resolves when it is attached. */
  static async startWorker(address: string, name: string): Promise<DemoProcess> {
    const module = join(dirname(mainModule), 'demo', 'demo-worker.js');
    const worker = DemoProcess.start(name, [module, address, name]);
    await worker.waitForLine('stdout', (line) => (line === 'attached' ? line : undefined));
    return worker;
  }

  private static start(name: string, args: readonly string[]): DemoProcess {
    return new DemoProcess(name, spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** For the end of the demo itself; synchronous. */
  static killAll(): void {
    for (const each of DemoProcess.alive) each.kill();
  }

  /** SIGKILL: no goodbye, no clean-up. */
  kill(): void {
    this.child.kill('SIGKILL');
  }

  /** SIGTERM, and patience for a drain. */
  async stop(): Promise<number | NodeJS.Signals> {
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.kill(), STOP_TIMEOUT_MS);
    try {
      return await this.ended;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What it last logged, for when something went wrong. */
  lastWords(): string {
    return this.log.text();
  }

  private waitForLine(stream: 'stdout' | 'stderr', match: (line: string) => string | undefined): Promise<string> {
    return new Promise((resolve, reject) => {
      const input = this.child[stream];
      if (input === null) return reject(new Error(`${this.name} has no ${stream}`));
      const lines = createInterface({ input });
      const fail = (why: string) => reject(new Error(`${this.name} ${why}\n${this.lastWords()}`));
      const timer = setTimeout(() => fail('did not start in time'), START_TIMEOUT_MS);
      void this.ended.then((end) => fail(`ended (${end}) before it was ready`));
      lines.on('line', (line) => {
        const found = matchSafely(match, line);
        if (found === undefined) return;
        clearTimeout(timer);
        lines.close();
        // Whatever it still says must not fill the pipe.
        input.resume();
        resolve(found);
      });
    });
  }
}

/** Not every line of a log need be JSON. */
function matchSafely(match: (line: string) => string | undefined, line: string): string | undefined {
  try {
    return match(line);
  } catch {
    return undefined;
  }
}
