/**
 * WorkerService: every method of the contract and the file that answers it. Owns the count of open work streams, which
 * is what a stopping server waits for.
 */
import type { WorkerService } from '../gen/reeve/v1/worker_service_pb.js';
import type { Handlers } from './call.js';
import { Reports } from './report.js';
import { type WorkContext, WorkStream } from './work-stream.js';
import { Workers, type WorkersContext } from './workers.js';

export class WorkStreams {
  private count = 0;

  constructor(private readonly context: WorkContext & WorkersContext) {}

  get open(): number {
    return this.count;
  }

  handlers(): Handlers<typeof WorkerService> {
    const workers = new Workers(this.context);
    const reports = new Reports(this.context.authority, this.context.dispatcher);
    return {
      work: (call) => {
        this.count += 1;
        return new WorkStream(this.context, call, () => (this.count -= 1));
      },
      report: (request, call) => reports.report(request, call),
      listWorkers: (request) => workers.list(request),
      drainWorker: (request, call) => workers.drain(request, call),
    };
  }
}
