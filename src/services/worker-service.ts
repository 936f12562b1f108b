/**
 * WorkerService: every method of the contract and the file that answers it. Owns the count of open work streams, which
 * is what a stopping server waits for.
 */
import type { WorkerService } from '../gen/reeve/v1/worker_service_pb.js';
import type { Handlers } from './call.js';
import { notServed } from './unserved.js';
import { type WorkContext, WorkStream } from './work-stream.js';

export class WorkStreams {
  private count = 0;

  constructor(private readonly context: WorkContext) {}

  get open(): number {
    return this.count;
  }

  handlers(): Handlers<typeof WorkerService> {
    return {
      work: (call) => {
        this.count += 1;
        return new WorkStream(this.context, call, () => (this.count -= 1));
      },
      report: () => notServed('Report'),
      listWorkers: () => notServed('ListWorkers'),
      drainWorker: () => notServed('DrainWorker'),
    };
  }
}
