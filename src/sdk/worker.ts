/**
 * `reeve/worker`: do tasks.
 *
 *     const worker = createWorker({
 *       address: '127.0.0.1:7450',
 *       slots: 10,
 *       handlers: {
 *         agent: async (claim, { signal, progress }) => {
 *           signal.throwIfAborted();
 *           await progress(0.5, 'half way');
 *           return { done: claim.args };
 *         },
 *       },
 *     });
 *     await worker.run(); // resolves after a drained SIGTERM
 */
import type { JsonObject } from './transport/json.js';
import { TaskWorker } from './worker/task-worker.js';
import type { WorkerOptions } from './worker/worker-options.js';

/**
 * A worker; nothing happens before `run` or `start`. The arguments of each kind can be stated,
 * `createWorker<{ agent: AgentArgs }>`, or on the handlers' own claims, `(claim: Claim<AgentArgs>) => …`.
 *
 * @throws OptionError, which names the option.
 */
export function createWorker<Kinds extends object = Record<string, JsonObject>>(
  options: WorkerOptions<Kinds>,
): TaskWorker {
  return new TaskWorker(options);
}

export { Claim } from './worker/claim.js';
export type { Handler, HandlerContext, Handlers } from './worker/handler.js';
export type { SettlementWord, Settled, WorkerNotice } from './worker/notices.js';
export {
  CancelTask,
  Completion,
  NonRetryable,
  OutOfTime,
  RetryLater,
  Suspend,
  TaskFailure,
} from './worker/outcomes.js';
export { CancelRequested, DeadlineExceeded, Draining, LeaseLost, StopReason } from './worker/stop-reasons.js';
export type { DrainOptions, TaskWorker } from './worker/task-worker.js';
export type { WorkerOptions } from './worker/worker-options.js';
export type { CompletionInput, ErrorInput, ExecutionDetail, FailureInput } from './settlement.js';
export { type JsonObject, JsonText, type JsonValue } from './transport/json.js';
export { OptionError } from './transport/option-checks.js';
export type { TlsOptions } from './transport/rpc.js';
export { isReeveError, ReeveError, type ReeveErrorReason } from './transport/reeve-error.js';
