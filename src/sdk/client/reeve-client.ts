/**
 * The client: one object per server and process, safe to share. Submissions travel on a stream, everything else in
 * single calls that are tried again where that is safe. Nothing here decides anything about a task. An idle client
 * keeps no process alive.
 */
import { create } from '@bufbuild/protobuf';
import { AdminService } from '../../gen/reeve/v1/admin_service_pb.js';
import { RefusalSchema } from '../../gen/reeve/v1/error_reason_pb.js';
import {
  ExplainRequestSchema,
  GetRequestSchema,
  SubmitBatchRequestSchema,
  type SubmitRequest,
  TaskService,
} from '../../gen/reeve/v1/task_service_pb.js';
import { WorkerService } from '../../gen/reeve/v1/worker_service_pb.js';
import { TaskView } from '../../gen/reeve/v1/task_pb.js';
import { optionalSpanMs, requireAddress, requireRpcOptions, requireSpanMs } from '../transport/option-checks.js';
import { type RawClient, rawClient } from '../transport/raw-clients.js';
import { fromRefusal } from '../transport/reeve-error.js';
import { Reach, type ReachOptions } from '../transport/reach.js';
import { deadlineExceeded, Retrier, type RetryOptions } from '../transport/retry.js';
import { type CallOptions, RpcConnection, type RpcOptions } from '../transport/rpc.js';
import { AdminClient } from './admin.js';
import type { TaskEvent } from './event.js';
import { type Explained, readExplained } from './explained.js';
import type { Intent } from './intent.js';
import {
  type Applied,
  type CancelBatchOptions,
  type Cancelled,
  type CancelledBatch,
  type CancelOptions,
  type CancelScope,
  readApplied,
  readCancelled,
  readCancelledBatch,
  readTransitioned,
  type ResumeOptions,
  toCancelBatchRequest,
  toCancelRequest,
  toResumeRequest,
  toTransitionRequest,
  type Transitioned,
  type TransitionOptions,
} from './requests.js';
import { type EventsOptions, listEvents, type ListOptions, listTasks } from './listing.js';
import { type PolicyChanges, toUpdatePolicyRequest, type UpdatePolicyOptions } from './policy-update.js';
import { type ClaimProof, readReported, type Reported, type ReportInput, toReportRequest } from './report.js';
import { requireCompleted, waitForEnd } from './result.js';
import { SubmitStream, type SubmitStreamOptions } from './submit-stream.js';
import { type Submission, type SubmissionDefaults, toSubmitRequest } from './submission.js';
import { submitAll, type SubmitAllOptions, type SubmitVerdict } from './submit-all.js';
import { readSubmitted, requireTask, type Submitted } from './submitted.js';
import type { Task } from './task.js';
import { readTask } from './task-codec.js';
import { WatchConnections } from './watch-connections.js';
import { type WatchedEvent, watchItems, type WatchOptions, type WatchScope } from './watch.js';
import { type TaskViewWord, viewWords } from './words.js';
import {
  type Drained,
  type DrainScope,
  type DrainWorkerOptions,
  listWorkers,
  type ListWorkersOptions,
  readDrained,
  toDrainRequest,
  type WorkerSession,
} from './workers.js';

export interface ConnectOptions extends RpcOptions, ReachOptions, SubmissionDefaults {
  /** For a call with all its retries, ms. Default 30,000. */
  readonly callTimeoutMs?: number;
  /** For a submission from the call to its verdict, the wait for room included, ms. Default 60,000. */
  readonly submitTimeoutMs?: number;
  readonly retry?: RetryOptions;
  readonly submitStream?: SubmitStreamOptions;
}

/** For one call. */
export interface CallSettings {
  /** With all its retries, ms. Default: the client's. */
  readonly timeoutMs?: number;
  /** Ends the call by throwing its reason; what was sent may have happened. */
  readonly signal?: AbortSignal;
}

export class ReeveClient {
  /** The generated services: protobuf messages, no retries. */
  readonly raw: {
    readonly tasks: RawClient<typeof TaskService>;
    readonly workers: RawClient<typeof WorkerService>;
    readonly admin: RawClient<typeof AdminService>;
  };
  /** For those who run the service. */
  readonly admin: AdminClient;
  private readonly rpc: RpcConnection;
  private readonly reach: Reach;
  private readonly watches: WatchConnections;
  private readonly submissions: SubmitStream;
  private readonly retrier: Retrier;
  private readonly callTimeoutMs: number;
  private readonly submitTimeoutMs: number;

  constructor(
    address: string,
    private readonly options: ConnectOptions,
  ) {
    requireAddress('address', address);
    requireRpcOptions(options);
    this.callTimeoutMs = requireSpanMs('callTimeoutMs', options.callTimeoutMs ?? 30_000);
    this.submitTimeoutMs = requireSpanMs('submitTimeoutMs', options.submitTimeoutMs ?? 60_000);
    this.rpc = new RpcConnection(address, options);
    this.reach = new Reach(address, options);
    this.reach.observe(this.rpc, true);
    this.watches = new WatchConnections(this.reach, options);
    this.submissions = new SubmitStream(this.rpc, this.reach, options.submitStream);
    this.retrier = new Retrier(options.retry);
    this.raw = {
      tasks: rawClient(this.rpc, TaskService),
      workers: rawClient(this.rpc, WorkerService),
      admin: rawClient(this.rpc, AdminService),
    };
    this.admin = new AdminClient(this.rpc, (attempt, settings) => this.call(attempt, settings));
  }

  /**
   * Admits one application, once, for ever; resolves after its commit. Calls of one turn share a frame. A promise
   * per submission is the back-pressure: for long lists use `submitAll`.
   *
   * @throws ReeveError as documented for TaskService.Submit. After DEADLINE_EXCEEDED or UNAVAILABLE it may have been
   *   admitted; submit again with the same key. After UNREACHABLE nothing was sent.
   */
  async submit(submission: Submission, settings: Pick<CallSettings, 'timeoutMs'> = {}): Promise<Submitted> {
    const request = toSubmitRequest(submission, this.options);
    const timeoutMs = optionalSpanMs('timeoutMs', settings.timeoutMs) ?? this.submitTimeoutMs;
    return readSubmitted(await this.submissions.submit(request, timeoutMs));
  }

  /** Submits whatever the source yields, keeping at most `concurrency` in flight; verdicts as they come. */
  submitAll(
    source: Iterable<Submission> | AsyncIterable<Submission>,
    options: SubmitAllOptions = {},
  ): AsyncGenerator<SubmitVerdict, void, undefined> {
    return submitAll((submission) => this.submit(submission), source, options);
  }

  /** As `submit` in a call of its own, for a producer of single tasks who wants no stream. In the basic view. */
  async submitUnary(submission: Submission, settings: CallSettings = {}): Promise<Submitted<Task>> {
    const request = toSubmitRequest(submission, this.options);
    const response = await this.call((call) => this.rpc.unary(TaskService.method.submit, request, call), settings);
    return { ...readSubmitted(response), task: readTask(requireTask(response)) };
  }

  /**
   * 1 … 1,000 submissions admitted in order in one call, so that a later one may depend on an earlier one; a verdict
   * for each, in their order.
   */
  async submitBatch(submissions: readonly Submission[], settings: CallSettings = {}): Promise<SubmitVerdict[]> {
    const requests: SubmitRequest[] = submissions.map((submission) => toSubmitRequest(submission, this.options));
    const batch = create(SubmitBatchRequestSchema, { submissions: requests, view: TaskView.NAME });
    const { verdicts } = await this.call(
      (call) => this.rpc.unary(TaskService.method.submitBatch, batch, call),
      settings,
    );
    return verdicts.map(({ idempotencyKey: key, verdict }): SubmitVerdict => {
      if (verdict.case === 'accepted') return { key, accepted: readSubmitted(verdict.value), refused: undefined };
      return { key, accepted: undefined, refused: fromRefusal(verdict.value ?? create(RefusalSchema)) };
    });
  }

  /** The task as the store has it now. Default view: full. @throws ReeveError TASK_NOT_FOUND. */
  get(taskId: string, settings: CallSettings & { readonly view?: TaskViewWord } = {}): Promise<Task> {
    return this.getBy({ taskId }, settings);
  }

  /** The same by the key it was submitted under. Default namespace: the client's. */
  getByKey(
    key: string,
    settings: CallSettings & { readonly view?: TaskViewWord; readonly namespace?: string } = {},
  ): Promise<Task> {
    return this.getBy({ idempotencyKey: key, namespace: settings.namespace ?? this.options.namespace ?? '' }, settings);
  }

  /** Tasks by filter, newest first, page after page as they are read. */
  list(options: ListOptions = {}): AsyncGenerator<Task, void, undefined> {
    const { signal } = options;
    return listTasks(
      (request) =>
        this.call(
          (call) => this.rpc.unary(TaskService.method.list, request, call),
          signal === undefined ? {} : { signal },
        ),
      { ...(this.options.namespace !== undefined && { namespace: this.options.namespace }), ...options },
    );
  }

  /** A task's history so far, oldest first, over all its generations. */
  events(taskId: string, options: EventsOptions = {}): AsyncGenerator<TaskEvent, void, undefined> {
    const { signal } = options;
    return listEvents(
      (request) =>
        this.call(
          (call) => this.rpc.unary(TaskService.method.listEvents, request, call),
          signal === undefined ? {} : { signal },
        ),
      taskId,
      options,
    );
  }

  /** What was committed and then what commits. For one task it ends after the terminal event. */
  async *watch(scope: WatchScope, options: WatchOptions = {}): AsyncGenerator<WatchedEvent, void, undefined> {
    for await (const item of watchItems(this.watches, scope, options)) {
      if (item.kind === 'event') yield item.event;
    }
  }

  /**
   * Waits until the task's current generation is over and returns the task, `result` and all.
   *
   * @throws TaskFailed, TaskCancelled, TaskTimedOut, TaskSkipped, TaskPurged; ReeveError DEADLINE_EXCEEDED after `timeoutMs`
   *   (default: never).
   */
  async result(taskId: string, settings: CallSettings = {}): Promise<Task> {
    const timeoutMs = optionalSpanMs('timeoutMs', settings.timeoutMs);
    const timeout = new AbortController();
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(
            () => timeout.abort(deadlineExceeded(`task ${taskId} is not over after ${timeoutMs} ms`)),
            timeoutMs,
          );
    const signal = settings.signal === undefined ? timeout.signal : AbortSignal.any([timeout.signal, settings.signal]);
    try {
      const source = {
        get: () => this.get(taskId, { signal }),
        watch: () => watchItems(this.watches, taskId, { fromStart: false, signal }),
      };
      return requireCompleted(await waitForEnd(source, signal));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Why a task is not running, or not ending, and what happens next by itself. */
  async explain(taskId: string, settings: CallSettings = {}): Promise<Explained> {
    const request = create(ExplainRequestSchema, { taskId });
    return readExplained(
      await this.call((call) => this.rpc.unary(TaskService.method.explain, request, call), settings),
    );
  }

  /** Asks a task to stop. "Cancelled" is said only when it is true; `waitFor` waits for a receipt. */
  async cancel(taskId: string, options: CancelOptions & CallSettings = {}): Promise<Cancelled> {
    const request = toCancelRequest(taskId, options, this.options.actor);
    const waitMs = options.waitFor === undefined ? 0 : requireSpanMs('waitTimeoutMs', options.waitTimeoutMs ?? 30_000);
    const timeoutMs = options.timeoutMs ?? this.callTimeoutMs + waitMs;
    return readCancelled(
      await this.call((call) => this.rpc.unary(TaskService.method.cancel, request, call), { ...options, timeoutMs }),
    );
  }

  /** Asks many tasks to stop, by id or by description: one call, one page, a verdict for each. */
  async cancelBatch(scope: CancelScope, options: CancelBatchOptions & CallSettings = {}): Promise<CancelledBatch> {
    const { namespace } = this.options;
    const within = Array.isArray(scope) || namespace === undefined ? scope : { namespace, ...scope };
    const request = toCancelBatchRequest(within, options, this.options.actor);
    const response = await this.call((call) => this.rpc.unary(TaskService.method.cancelBatch, request, call), options);
    return readCancelledBatch(response, request.requestId);
  }

  /** Lets a suspended task go on, or gives a finished one a new generation. */
  async resume(taskId: string, options: ResumeOptions & CallSettings = {}): Promise<Applied> {
    const request = toResumeRequest(taskId, options, this.options.actor);
    return readApplied(await this.call((call) => this.rpc.unary(TaskService.method.resume, request, call), options));
  }

  /** Changes how a live task is treated: what is given changes, null returns to the default. */
  async updatePolicy(
    taskId: string,
    changes: PolicyChanges,
    options: UpdatePolicyOptions & CallSettings = {},
  ): Promise<Applied> {
    const request = toUpdatePolicyRequest(taskId, changes, options, this.options.actor);
    return readApplied(
      await this.call((call) => this.rpc.unary(TaskService.method.updatePolicy, request, call), options),
    );
  }

  /** One typed intent, `{ type: 'suspend' }`, under the guards that are stated. */
  async transition(
    taskId: string,
    intent: Intent,
    options: TransitionOptions & CallSettings = {},
  ): Promise<Transitioned> {
    const request = toTransitionRequest(taskId, intent, options, this.options.actor);
    return readTransitioned(
      await this.call((call) => this.rpc.unary(TaskService.method.transition, request, call), options),
    );
  }

  /**
   * Says what happened to a claim, and renews it: for a worker without a stream.
   *
   * @throws ReeveError LEASE_LOST: stop the work. Refusals of single events are in `rejected`.
   */
  async report(claim: ClaimProof, input: ReportInput = {}, settings: CallSettings = {}): Promise<Reported> {
    const request = toReportRequest(claim, input);
    return readReported(
      await this.call((call) => this.rpc.unary(WorkerService.method.report, request, call), settings),
    );
  }

  /** Who is there to do the work, by name and then by session. */
  listWorkers(options: ListWorkersOptions = {}): AsyncGenerator<WorkerSession, void, undefined> {
    const { signal } = options;
    return listWorkers(
      (request) =>
        this.call(
          (call) => this.rpc.unary(WorkerService.method.listWorkers, request, call),
          signal === undefined ? {} : { signal },
        ),
      options,
    );
  }

  /** Lets sessions finish what they hold and gives them nothing more. It cannot be taken back. */
  async drainWorker(scope: DrainScope, options: DrainWorkerOptions & CallSettings = {}): Promise<Drained> {
    const request = toDrainRequest(scope, options, this.options.actor);
    return readDrained(
      await this.call((call) => this.rpc.unary(WorkerService.method.drainWorker, request, call), options),
    );
  }

  /** Answers what is outstanding, ends every stream and the connections. */
  async close(): Promise<void> {
    this.watches.close();
    await this.submissions.close();
    this.rpc.close();
  }

  /** `await using reeve = connect(…)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async getBy(
    name: { taskId: string } | { idempotencyKey: string; namespace: string },
    settings: CallSettings & { readonly view?: TaskViewWord },
  ): Promise<Task> {
    const request = create(GetRequestSchema, { ...name, view: viewWords.value(settings.view ?? 'full') });
    const response = await this.call((call) => this.rpc.unary(TaskService.method.get, request, call), settings);
    return readTask(requireTask(response));
  }

  private async call<T>(attempt: (call: CallOptions) => Promise<T>, settings: CallSettings): Promise<T> {
    const timeoutMs = optionalSpanMs('timeoutMs', settings.timeoutMs) ?? this.callTimeoutMs;
    const { signal, end } = this.reach.patience(settings.signal);
    try {
      return await this.retrier.run(attempt, timeoutMs, signal, () => this.reach.everConnected);
    } catch (error) {
      throw this.reach.explain(error);
    } finally {
      end();
    }
  }
}
