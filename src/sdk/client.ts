/**
 * `reeve/client`: submit, read, follow and stop tasks.
 *
 *     const reeve = connect('127.0.0.1:7450');
 *     const { task } = await reeve.submit({ kind: 'agent', key: 'order-17', args: { prompt: '…' } });
 *     const done = await reeve.result(task.id);
 */
import { type ConnectOptions, ReeveClient } from './client/reeve-client.js';

/** A client of the server at `address`, `host:port`. Connects with its first call. @throws OptionError. */
export function connect(address: string, options: ConnectOptions = {}): ReeveClient {
  return new ReeveClient(address, options);
}

export type { CallSettings, ConnectOptions, ReeveClient } from './client/reeve-client.js';
export type { AdminClient, Finding, Repaired, RepairOptions, VerifiedPage, VerifyOptions } from './client/admin.js';
export type { TaskEvent } from './client/event.js';
export type {
  Applied,
  CancelBatchOptions,
  Cancelled,
  CancelledBatch,
  CancelOptions,
  CancelScope,
  CancelVerdict,
  ReasonInput,
  ResumeOptions,
  Transitioned,
  TransitionOptions,
} from './client/requests.js';
export type { Blocker, Explained } from './client/explained.js';
export type { Intent } from './client/intent.js';
export type { EventsOptions, ListOptions, TaskFilter } from './client/listing.js';
export type { PolicyChanges, UpdatePolicyOptions } from './client/policy-update.js';
export type { ClaimProof, Reported, ReportInput, Saying } from './client/report.js';
export { TaskCancelled, TaskFailed, TaskNotCompleted, TaskPurged, TaskSkipped, TaskTimedOut } from './client/result.js';
export type { CallerActor, PolicySettings, RetrySettings, Submission } from './client/submission.js';
export type { SubmitAllOptions, SubmitVerdict } from './client/submit-all.js';
export type { Submitted } from './client/submitted.js';
export type { Actor, EventRef, Generation, Reason, Task, TaskErrorInfo, TaskName } from './client/task.js';
export type { WatchedEvent, WatchOptions, WatchScope } from './client/watch.js';
export type {
  BlockerWord,
  ExecutionTargetWord,
  RepairWord,
  TaskStatusWord,
  TaskViewWord,
  TimerWord,
} from './client/words.js';
export type { Drained, DrainScope, DrainWorkerOptions, ListWorkersOptions, WorkerSession } from './client/workers.js';
export { isTerminal } from './client/words.js';
export type { JsonObject, JsonValue } from './transport/json.js';
export type { CompletionInput, ErrorInput, ExecutionDetail, FailureInput } from './settlement.js';
export type { ConnectionState } from './transport/reach.js';
export { OptionError } from './transport/option-checks.js';
export type { TlsOptions } from './transport/rpc.js';
export { isReeveError, ReeveError, type ReeveErrorReason } from './transport/reeve-error.js';
