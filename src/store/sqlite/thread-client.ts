/**
 * The store's end of one worker thread: requests out, answers back in the same order. When the thread dies, everything
 * pending and everything later fails as `fatal`: what it was writing is known only after a restart.
 */
import { Worker } from 'node:worker_threads';
import { StoreError } from '../store-error.js';
import type { Answer, ThreadData } from './protocol.js';

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: StoreError) => void;
}

type Call = (...args: never) => unknown;

/** Tests run from the sources, and a worker can't: it takes the built file then (npm test builds first). */
function threadModule(): URL {
  const fromSources = import.meta.url.endsWith('.ts');
  return new URL(fromSources ? '../../../dist/store/sqlite/thread.js' : './thread.js', import.meta.url);
}

export class ThreadClient<Calls extends { readonly [Name in keyof Calls]: Call }> {
  private readonly worker: Worker;
  private readonly pending: Pending[] = [];
  private dead: StoreError | null = null;
  private closing = false;
  private readonly mourners: ((error: StoreError) => void)[] = [];

  private constructor(
    private readonly data: ThreadData,
    module: URL,
  ) {
    this.worker = new Worker(module, { workerData: data });
    this.worker.on('message', (answer: Answer) => {
      this.settle(answer);
    });
    this.worker.on('error', (error) => {
      this.die(`the ${data.role} thread of the store failed: ${error.message}`);
    });
    this.worker.on('exit', (code) => {
      this.die(`the ${data.role} thread of the store ended with ${code}`);
    });
  }

  /** Waits until the thread has its connection; `opened` is what it says then. */
  static async start<Calls extends { readonly [Name in keyof Calls]: Call }>(
    data: ThreadData,
    module: URL = threadModule(),
  ): Promise<{ readonly client: ThreadClient<Calls>; readonly opened: unknown }> {
    const client = new ThreadClient<Calls>(data, module);
    try {
      return { client, opened: await client.next() };
    } catch (error) {
      await client.worker.terminate();
      throw error;
    }
  }

  call<Name extends keyof Calls>(name: Name, ...args: Parameters<Calls[Name]>): Promise<ReturnType<Calls[Name]>> {
    if (this.dead !== null) return Promise.reject(this.dead);
    this.worker.postMessage([name, args]);
    return this.next() as Promise<ReturnType<Calls[Name]>>;
  }

  /** Told once when the thread is of no use any more, also when nobody waits for it; at once if it is so already. */
  onDeath(listener: (error: StoreError) => void): void {
    if (this.dead === null) this.mourners.push(listener);
    else listener(this.dead);
  }

  /** Resolves when the thread is gone. One that failed is ended as it is: the restart tells what it wrote. */
  async close(this: ThreadClient<Calls & { close: () => null }>): Promise<void> {
    if (this.dead !== null) {
      await this.worker.terminate();
      return;
    }
    this.closing = true;
    const gone = new Promise((resolve) => this.worker.once('exit', resolve));
    await this.call('close', ...([] as Parameters<(Calls & { close: () => null })['close']>));
    await gone;
  }

  private next(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.pending.push({ resolve, reject });
    });
  }

  private settle(answer: Answer): void {
    const request = this.pending.shift();
    if (answer.ok) {
      request?.resolve(answer.value);
      return;
    }
    const error = new StoreError(answer.failure, answer.message);
    request?.reject(error);
    if (answer.failure === 'fatal') this.mourn(error);
  }

  private die(message: string): void {
    const error = this.dead ?? new StoreError('fatal', message);
    for (const { reject } of this.pending.splice(0)) reject(error);
    this.mourn(error);
  }

  private mourn(error: StoreError): void {
    this.dead ??= error;
    const mourners = this.mourners.splice(0);
    // The end that was asked for is no death.
    if (!this.closing) for (const listener of mourners) listener(this.dead);
  }
}
