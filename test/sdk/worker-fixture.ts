/**
 * A worker under test and its scripted server: handlers that wait for the test, and everything the worker tells.
 */
import {
  type Claim,
  createWorker,
  type Handler,
  type HandlerContext,
  type TaskWorker,
  type WorkerNotice,
  type WorkerOptions,
} from '../../src/sdk/worker.js';
import { FakeServer } from './fake-server.js';
import { Incoming } from './incoming.js';
import { ScriptedSession } from './scripted-session.js';

type Options = Partial<WorkerOptions<{ agent: Claim['args'] }>>;

export interface BegunClaim {
  readonly claim: Claim;
  readonly context: HandlerContext;
  /** Lets the handler return. */
  readonly finish: (result?: unknown) => void;
}

export class WorkerFixture {
  readonly notices = new Incoming<WorkerNotice>();
  readonly begun = new Incoming<BegunClaim>();
  private made: TaskWorker | undefined;

  private constructor(public server: FakeServer) {}

  static async open(): Promise<WorkerFixture> {
    return new WorkerFixture(await FakeServer.start());
  }

  get worker(): TaskWorker {
    if (this.made === undefined) throw new Error('no worker was made');
    return this.made;
  }

  /** Runs until the test finishes it, or its signal aborts. */
  readonly held: Handler = (claim, context) =>
    new Promise((resolve, reject) => {
      const { signal } = context;
      const stop = () => reject(signal.reason as Error);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
      this.begun.push({ claim, context, finish: resolve });
    });

  /** The same without an ear for signals. */
  readonly deaf: Handler = (claim, context) => new Promise((finish) => this.begun.push({ claim, context, finish }));

  make(agent: Handler, more: Options = {}): TaskWorker {
    this.made = createWorker({
      address: this.server.address,
      handlers: { agent },
      onNotice: (notice) => this.notices.push(notice),
      drainStopMs: 50,
      signals: [],
      ...more,
    });
    return this.made;
  }

  start(agent: Handler, more: Options = {}): Promise<ScriptedSession> {
    void this.make(agent, more).start();
    return ScriptedSession.welcome(this.server);
  }

  async close(): Promise<void> {
    await this.made?.drain({ graceMs: 0, answerMs: 0 });
    await this.server.stop();
  }
}
