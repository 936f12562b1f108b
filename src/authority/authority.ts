/**
 * The authority: the one way in which anything about a task changes (architecture.md, "One writer").
 * Every binding, timer, schedule and worker sends its intents here; it judges, commits and publishes them.
 * It owns no rules (the kernel does) and no rows (the store does).
 */
import type { Submission } from '../kernel/admission/submission.js';
import type { ResumeIntent } from '../kernel/intent.js';
import { NO_PERMIT_RULES, type PermitRules } from '../kernel/permits.js';
import type { Refusal } from '../kernel/refusal.js';
import type { RetentionDefaults } from '../kernel/retention.js';
import type { Clock } from '../lib/clock.js';
import type { Random } from '../lib/random.js';
import type { SessionWrite } from '../store/commit-plan.js';
import { StoreError } from '../store/store-error.js';
import type { TaskStore } from '../store/task-store.js';
import type { ClaimSource } from './claim-source.js';
import { Committer } from './committer.js';
import { GenerationIds } from './generation-ids.js';
import { type IntentAnswer, type IntentRequest, IntentWork, type Naming } from './intent-work.js';
import { LeaseTokens } from './lease-tokens.js';
import { indexRules } from './placement-index.js';
import { type CommitListener, Publisher } from './publisher.js';
import { type CacheRead, RecordCache } from './record-cache.js';
import { type ReportOutcome, type ReportRequest, ReportWork } from './report-work.js';
import { type SessionAnswer, SessionWork } from './session-work.js';
import { contention } from './store-refusal.js';
import { type SubmitAnswer, SubmitWork } from './submit-work.js';
import { TaskReader } from './task-reader.js';
import { Upkeep } from './upkeep.js';
import { MAX_JUDGEMENTS } from './work.js';

/** A worker confirms a claim within this time, or it is handed back. */
export const DEFAULT_ACCEPT_TIMEOUT_MS = 5_000;
/** What the record cache may hold. */
export const DEFAULT_CACHE_BYTES = 256 * 1024 * 1024;

export interface AuthorityOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly acceptTimeoutMs?: number;
  readonly cacheBytes?: number;
  /** How long tasks are kept that name no retention of their own; by default for ever. */
  readonly retention?: RetentionDefaults;
  /** How many tasks of a key or a capability may run at once. Default: one of a key, any number of a capability. */
  readonly permitRules?: PermitRules;
  /** The store must not be used any more; the process is expected to end. */
  readonly onFatal: (error: unknown) => void;
  /** A broken invariant or a failing listener; the service goes on. */
  readonly onDefect: (error: unknown) => void;
}

export class Authority {
  private readonly committer: Committer;
  /** What no caller asks for. */
  readonly upkeep: Upkeep;
  /** Everything that may be asked. */
  readonly reads: TaskReader;
  private readonly publisher: Publisher;
  private readonly cache: RecordCache;
  private readonly newId: () => string;
  private readonly outageListeners = new Set<() => void>();
  /** Submissions whose key was taken, until the task that holds it is read. */
  private readonly resolving = new Set<Promise<void>>();
  /** Whoever stops closes the store soon after: what its end does to late reads is no news. */
  private stopped = false;
  private fatalTold = false;

  private constructor(
    private readonly options: AuthorityOptions,
    readonly tokens: LeaseTokens,
  ) {
    const { store, clock, random, onDefect } = options;
    this.newId = () => random.uuidV7();
    this.cache = new RecordCache(options.cacheBytes ?? DEFAULT_CACHE_BYTES);
    this.publisher = new Publisher(onDefect);
    this.committer = new Committer({
      store,
      clock,
      cache: this.cache,
      publisher: this.publisher,
      newBatchId: this.newId,
      acceptTimeoutMs: options.acceptTimeoutMs ?? DEFAULT_ACCEPT_TIMEOUT_MS,
      rules: indexRules(this.permitRules, options.retention),
      onFatal: (error) => this.end(error),
      onDefect,
      onOutage: () => {
        for (const listener of this.outageListeners) listener();
      },
    });
    this.upkeep = new Upkeep(this.committer);
    this.reads = new TaskReader({
      store,
      cache: this.cache,
      permitRules: this.permitRules,
      damage: this.committer.damage,
      noteFailure: (error) => this.noteFailure(error),
      onDefect,
    });
    store.onDeath((error) => this.end(error));
  }

  /** Throws StoreError when the store does not answer. */
  static async open(options: AuthorityOptions): Promise<Authority> {
    return new Authority(options, new LeaseTokens(await options.store.secret()));
  }

  get store(): TaskStore {
    return this.options.store;
  }

  get permitRules(): PermitRules {
    return this.options.permitRules ?? NO_PERMIT_RULES;
  }

  get clock(): Clock {
    return this.options.clock;
  }

  get random(): Random {
    return this.options.random;
  }

  /** Epoch ms, the store's clock. */
  now(): number {
    return this.options.clock.nowMs();
  }

  /** Told of every commit, in commit order, after it. Returns the call that ends the subscription. */
  subscribe(listener: CommitListener): () => void {
    return this.publisher.subscribe(listener);
  }

  /** Told whenever the store does not answer, and when it answers again: silence proves nothing for a while. */
  subscribeToOutages(listener: () => void): () => void {
    this.outageListeners.add(listener);
    return () => this.outageListeners.delete(listener);
  }

  /** For whoever reads the store directly: a failure that means the end of the store ends the process. */
  noteFailure(error: unknown): void {
    if (error instanceof StoreError && error.failure === 'fatal') this.end(error);
  }

  useClaims(source: ClaimSource): void {
    this.committer.useClaims(source);
  }

  wakeForClaims(): void {
    this.committer.wakeForClaims();
  }

  /** Runs a read so that it sees everything judged so far, also what is only now being committed. */
  readBehindBatch(read: () => void): void {
    this.committer.readBehindBatch(read);
  }

  /** Admits a task once (section 5). `settle` is called exactly once, after the commit. */
  submit(submission: Submission, settle: (answer: SubmitAnswer) => void): void {
    this.committer.enqueue(
      new SubmitWork(
        submission,
        {
          newId: this.newId,
          resolveDuplicate: (work, taskId) => this.resolveDuplicate(work, taskId),
          refuseUnlessKnown: (work, refusal) => this.refuseUnlessKnown(work, refusal),
        },
        this.once(settle),
      ),
    );
  }

  /** Judges one intent on one task (sections 3 and 4). Never rejects: a failure is an answer. */
  apply(request: IntentRequest): Promise<IntentAnswer> {
    const { intent } = request;
    if (intent.kind === 'resume' && intent.newGenerationId !== null) return this.applyNamed(request, intent);
    return new Promise((resolve) => this.enqueueIntent(request, resolve));
  }

  /** A Resume under an id of the caller's: judged with the ids of all generations before, looked at again if need be. */
  private async applyNamed(request: IntentRequest, intent: ResumeIntent): Promise<IntentAnswer> {
    const ids = new GenerationIds(this.store, request.taskId);
    const named = { ...request, intent: { ...intent, formerGenerationIds: ids.known } };
    for (let tries = 0; tries < MAX_JUDGEMENTS; tries++) {
      const answer = await new Promise<IntentAnswer | null>((resolve) => {
        this.enqueueIntent(named, resolve, { ids, outdated: () => resolve(null) });
      });
      if (answer !== null) return answer;
      const read = await this.reads.read(request.taskId, async () => ({ ok: true, value: await ids.read() }));
      if (!read.ok) return { kind: 'refused', refusal: read.refusal, record: null };
    }
    return { kind: 'refused', refusal: contention(), record: null };
  }

  private enqueueIntent(
    request: IntentRequest,
    settle: (answer: IntentAnswer) => void,
    naming: Naming | null = null,
  ): void {
    const find = this.store.findLedgerEntry.bind(this.store);
    this.committer.enqueue(new IntentWork(request, find, settle, naming));
  }

  /** Judges what a worker says about its claim (section 7). `settle` is called exactly once, after the commit. */
  report(request: ReportRequest, settle: (outcome: ReportOutcome) => void): void {
    this.committer.enqueue(new ReportWork(request, this.once(settle)));
  }

  /** Changes a session; `lost` when its guard did not hold. */
  writeSession(write: SessionWrite): Promise<SessionAnswer> {
    return new Promise((resolve) => this.committer.enqueue(new SessionWork(write, resolve)));
  }

  /** For records that are read elsewhere (a ready window) and kept at hand for the decisions that follow. */
  beginRead(): CacheRead {
    return this.cache.beginRead();
  }

  /** Refuses new work and resolves once all that was accepted is committed and answered. Leaves the store open. */
  async stop(): Promise<void> {
    await this.committer.stop();
    // A refusal that turns out to be a replay resolves in a second step.
    while (this.resolving.size > 0) await Promise.all(this.resolving);
    this.stopped = true;
  }

  private end(error: unknown): void {
    if (this.stopped || this.fatalTold) return;
    this.fatalTold = true;
    this.options.onFatal(error);
  }

  private resolveDuplicate(work: SubmitWork, taskId: string): void {
    const resolved = this.reads.find(taskId).then((original) => {
      this.resolving.delete(resolved);
      if (original.ok) work.resolve(original.value);
      else work.refuse(original.refusal);
    });
    this.resolving.add(resolved);
  }

  private refuseUnlessKnown(work: SubmitWork, refusal: Refusal): void {
    const { namespace, idempotencyKey } = work.submission;
    const looked = this.reads.findTaskId(namespace, idempotencyKey).then((known) => {
      this.resolving.delete(looked);
      if (known.ok) this.resolveDuplicate(work, known.value);
      else work.refuse(known.refusal.reason === 'TASK_NOT_FOUND' ? refusal : known.refusal);
    });
    this.resolving.add(looked);
  }

  /** A callback that fails harms nobody else, and is not called again. */
  private once<Answer>(settle: (answer: Answer) => void): (answer: Answer) => void {
    let settled = false;
    return (answer) => {
      if (settled) return;
      settled = true;
      try {
        settle(answer);
      } catch (error) {
        this.options.onDefect(error);
      }
    };
  }
}
