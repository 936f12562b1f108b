// A worker of the SDK in this process, with everything it began and told written down; its handlers wait for the test.

import {
  type Claim,
  createWorker,
  type HandlerContext,
  type Settled,
  type TaskWorker,
  type WorkerNotice,
  type WorkerOptions,
} from '../../src/sdk/worker.js';
import { Incoming } from '../sdk/incoming.js';

type Options = Partial<WorkerOptions<{ agent: Claim['args'] }>>;

export interface Execution {
  readonly claim: Claim;
  readonly context: HandlerContext;
  /** Lets the handler return. */
  readonly finish: (result?: unknown) => void;
}

export class SdkWorker {
  readonly executions = new Incoming<Execution>();
  readonly notices = new Incoming<WorkerNotice>();
  readonly settled = new Incoming<Settled>();

  private constructor(
    readonly name: string,
    private readonly make: (self: SdkWorker) => TaskWorker,
  ) {}

  private worker!: TaskWorker;

  /** Resolves when it is attached. Without a handler of the test's, an execution lasts until it is told to finish. */
  static async start(address: string, name: string, options: Options = {}): Promise<SdkWorker> {
    const worker = new SdkWorker(name, (self) =>
      createWorker({
        address,
        name,
        signals: [],
        onNotice: (notice) => self.notices.push(notice),
        onSettled: (settled) => self.settled.push(settled),
        handlers: { agent: (claim, context) => self.execute(claim, context) },
        ...options,
      }),
    );
    worker.worker = worker.make(worker);
    await worker.worker.start();
    return worker;
  }

  /** How often a handler was begun for the task. */
  executionsOf(taskId: string): number {
    return this.executions.all.filter(({ claim }) => claim.taskId === taskId).length;
  }

  /** The next notice of that type. */
  async notice<Type extends WorkerNotice['type']>(type: Type): Promise<Extract<WorkerNotice, { type: Type }>> {
    return this.notices.find((notice): notice is Extract<WorkerNotice, { type: Type }> => notice.type === type);
  }

  stop(): Promise<void> {
    return this.worker.stop();
  }

  private execute(claim: Claim, context: HandlerContext): Promise<unknown> {
    return new Promise((resolve, reject) => {
      context.signal.addEventListener('abort', () => reject(context.signal.reason as Error), { once: true });
      this.executions.push({ claim, context, finish: resolve });
    });
  }
}
