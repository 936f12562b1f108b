/**
 * The authority as a library: every call of it, over the engine that the server has too (deployment/engine.ts). It owns no
 * rule: submissions go through admission, intents through the authority, claims through the dispatcher's sessions, so
 * that a task cannot tell by which door it was touched. Refusals are thrown as ReeveRefusal.
 */
import type { Authority } from '../authority/authority.js';
import type { SubmitAnswer } from '../authority/submit-work.js';
import { UnaryReports } from '../dispatcher/unary-reports.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { DEFAULT_NAMESPACE, resolveNamespace } from '../kernel/admission/identifiers.js';
import type { Actor } from '../kernel/cause.js';
import { leaseLost } from '../kernel/decide.js';
import { MAX_WORKER_NAME_BYTES, claimTtlMs } from '../kernel/delivery.js';
import type { Explanation } from '../kernel/explain.js';
import { refuse } from '../kernel/refusal.js';
import { type Engine, stopEngine } from '../deployment/engine.js';
import { Intents, type Speaker, remembersCancel, remembersTransition } from '../services/intents.js';
import { valueOf } from '../services/value-of.js';
import { boundedText } from '../wire/bounded-text.js';
import { RefusalError, checked } from '../wire/refusal-error.js';
import { DEFAULT_ACTOR } from '../wire/stated-cause.js';
import { Claim, type ClaimContext } from './claim.js';
import { type CommitListener, Commits, type CommitsOptions } from './commits.js';
import type { Commit, TaskEvent } from './event.js';
import { type Transitioned, transitionedOf } from './fact.js';
import { type CauseOptions, type Intent, type TransitionOptions, commandOf, statedIntent } from './intent.js';
import { type EventsOptions, type ListOptions, eventsOf, tasksOf } from './listing.js';
import { type Cancelled, cancelledOf } from './cancelled.js';
import { ReeveRefusal, asThrown, refusing } from './refusal.js';
import { spanMs } from './saying.js';
import { type Submission, admitted } from './submission.js';
import { type Submitted, type SubmitVerdict, purgedRefusal, submittedOf } from './submitted.js';
import { type Task, type TaskDetails, detailsOf } from './task.js';

export interface EmbeddedContext {
  readonly engine: Engine;
  readonly kinds: ActionKindRegistry;
  readonly principal: string;
  /** Null: a producer without a name. */
  readonly actor: Actor | null;
  readonly closeStore: () => Promise<void>;
  readonly onDefect: (error: unknown) => void;
}

export interface CancelOptions extends CauseOptions {
  /** Another generation than the current one → STALE_GENERATION. */
  readonly generationId?: string;
  /** Ms after which a running task that has not settled is cancelled and its lease revoked; default: never. */
  readonly graceMs?: number;
}

export interface ResumeOptions extends CauseOptions {
  /** A terminal task's new generation: 1–128 of `A–Z a–z 0–9 . _ : -`, never used for this task. Default: a UUIDv7. */
  readonly newGenerationId?: string;
  /** Any JSON value, at most 128 KiB as text: handed to the next claim. */
  readonly input?: unknown;
  readonly generationId?: string;
  readonly expectedRevision?: number;
}

export interface ClaimOptions extends CauseOptions {
  /** At most 255 bytes. Default: `embedded`. */
  readonly worker?: string;
  /** The time to live between two reports, ms: 2,000 to 3,600,000, outside of which it is clamped. Default: 30,000. */
  readonly ttlMs?: number;
}

/** Submissions judged at a time by `submitAll`: about two transactions. */
const SUBMISSIONS_PER_STEP = 1_000;

export class EmbeddedReeve {
  private readonly authority: Authority;
  private readonly intents: Intents;
  private readonly commitsTold: Commits;
  private readonly claims: ClaimContext;
  private readonly speaker: Speaker;
  private closing: Promise<void> | null = null;

  /** By `openAuthority` alone. */
  constructor(private readonly context: EmbeddedContext) {
    const { engine, principal, onDefect } = context;
    const { authority, dispatcher } = engine;
    this.authority = authority;
    this.speaker = { principal, source: 'embedded' };
    this.intents = new Intents(authority, dispatcher.rules);
    this.commitsTold = new Commits(authority, onDefect);
    this.claims = {
      authority,
      reports: new UnaryReports(authority, dispatcher.unary),
      speaker: this.speaker,
      requireOpen: () => this.requireOpen(),
    };
  }

  /**
   * Admits a task once (lifecycle.md section 5). The same key with the same application is the same task, REPLAYED; with
   * another one IDEMPOTENCY_CONFLICT, whose `pointers` name the places that differ. Also MALFORMED,
   * ACTION_KIND_UNREGISTERED, TASK_ID_TAKEN, TASK_NOT_FOUND (a parent or dependency; or the task itself was purged, and
   * then `purged`, `status`, `generation` and `finished_at` say what is left), PARENT_CONSTRAINT, OVERLOADED.
   */
  submit(submission: Submission): Promise<Submitted> {
    return this.call(async () => this.submitted(await this.admit(submission)));
  }

  /** A verdict per submission, in their order; one bad submission never affects another. */
  submitAll(submissions: readonly Submission[]): Promise<readonly SubmitVerdict[]> {
    return this.call(async () => {
      const verdicts: SubmitVerdict[] = [];
      for (let from = 0; from < submissions.length; from += SUBMISSIONS_PER_STEP) {
        const step = submissions.slice(from, from + SUBMISSIONS_PER_STEP);
        verdicts.push(...(await Promise.all(step.map((submission) => this.verdict(submission)))));
      }
      return verdicts;
    });
  }

  /** The task as the store has it now, with args, result, checkpoint and resume input. TASK_NOT_FOUND, RECORD_DAMAGED. */
  get(taskId: string): Promise<TaskDetails> {
    return this.call(async () => detailsOf(this.authority, valueOf(await this.authority.reads.get(taskId))));
  }

  /** The same by the key it was admitted under, in namespace `default` unless another is given. */
  find(key: string, namespace = DEFAULT_NAMESPACE): Promise<TaskDetails> {
    return this.call(async () => {
      const taskId = valueOf(await this.authority.reads.findTaskId(checked(resolveNamespace(namespace)), key));
      return detailsOf(this.authority, valueOf(await this.authority.reads.get(taskId)));
    });
  }

  /** Tasks in admission order, page by page as they are read. */
  list(options: ListOptions = {}): AsyncIterableIterator<Task> {
    return this.reading(tasksOf(this.authority, options));
  }

  /** The history of a task, oldest first, over all its generations, as far as it is committed. TASK_NOT_FOUND. */
  events(taskId: string, options: EventsOptions = {}): AsyncIterableIterator<TaskEvent> {
    return this.reading(eventsOf(this.authority, taskId, options));
  }

  /**
   * One typed intent under the guards stated (lifecycle.md sections 3 and 4). Refusals are those of the contract:
   * STALE_GENERATION, LEASE_REQUIRED, TERMINAL_GENERATION, INVALID_TRANSITION, CANCELLATION_FENCED,
   * CANCELLATION_NOT_REQUESTED, PARENT_CONSTRAINT, CHILDREN_ACTIVE, IDEMPOTENCY_CONFLICT, …
   */
  transition(taskId: string, intent: Intent, options: TransitionOptions = {}): Promise<Transitioned> {
    return this.call(async () => {
      const proof = intent.type === 'settle_completion' ? intent : {};
      const command = commandOf(taskId, statedIntent(intent), options, this.context.actor, proof);
      const answer = await this.intents.apply(command, this.speaker, remembersTransition);
      return transitionedOf(this.authority, answer);
    });
  }

  /** Two-phase cancellation (section 6): what does not run is cancelled at once, the owner of what runs is asked. */
  cancel(taskId: string, { graceMs, ...options }: CancelOptions = {}): Promise<Cancelled> {
    return this.call(async () => {
      const intent = {
        kind: 'request_cancellation',
        graceMs: graceMs === undefined ? null : spanMs('graceMs', graceMs),
      } as const;
      const command = commandOf(taskId, intent, options, this.context.actor);
      return cancelledOf(this.authority, await this.intents.apply(command, this.speaker, remembersCancel));
    });
  }

  /** Suspended: the same generation goes on. Terminal: the next begins. */
  resume(taskId: string, { newGenerationId, input, ...options }: ResumeOptions = {}): Promise<Transitioned> {
    const named = newGenerationId === undefined ? {} : { newGenerationId };
    return this.transition(taskId, { type: 'resume', ...named, input }, options);
  }

  /**
   * Takes a queued task for a worker in this process. The claim is lost when it is not renewed within its time to live.
   * INVALID_TRANSITION when the task is not queued, ACTION_KIND_UNREGISTERED while its kind is not registered.
   */
  claim(taskId: string, { worker = 'embedded', ttlMs, ...options }: ClaimOptions = {}): Promise<Claim> {
    return this.call(async () => {
      const workerName = boundedText('worker', worker, MAX_WORKER_NAME_BYTES);
      const intent = {
        kind: 'claim',
        workerName,
        ttlMs: claimTtlMs(ttlMs === undefined ? null : spanMs('ttlMs', ttlMs)),
      } as const;
      const command = commandOf(taskId, intent, options, null);
      const { unary } = this.context.engine.dispatcher;
      const answer = await unary.claim(workerName, intent.ttlMs, (session) =>
        this.intents.apply(command, this.speaker, undefined, session),
      );
      if (answer.kind === 'refused') throw new RefusalError(answer.refusal);
      const record = answer.kind === 'applied' ? answer.after : answer.record;
      const epoch = answer.kind === 'replayed' ? answer.remembered.epoch : record.lease?.epoch;
      // A repetition of the key whose claim is over by now: there is no lease to be had from it.
      if (record.lease === null || record.lease.epoch !== epoch) throw new RefusalError(leaseLost(record));
      return Claim.of(this.claims, record, record.lease);
    });
  }

  /** Why a task is not running, or not ending, and what happens next by itself. Sessions of this process only. */
  explain(taskId: string): Promise<Explanation> {
    return this.call(async () =>
      this.context.engine.dispatcher.explain(valueOf(await this.authority.reads.get(taskId))),
    );
  }

  /**
   * The listener is told of every commit, after it and in its order; what it is given is frozen. What it throws changes
   * nothing. Returns the call that ends the subscription.
   */
  subscribe(listener: CommitListener): () => void {
    this.requireOpen();
    return this.commitsTold.subscribe(listener);
  }

  /**
   * The same to be read: from this call on, until the authority closes. A reader that leaves 10,000 commits unread is
   * cut with SLOW_READER once it has read those.
   */
  commits(options: CommitsOptions = {}): AsyncIterableIterator<Commit> {
    this.requireOpen();
    return this.commitsTold.read(options);
  }

  /** Commits what was accepted, then closes the store. Claims stay, and are lost unless they are renewed in time. */
  close(): Promise<void> {
    return (this.closing ??= this.stop());
  }

  private async stop(): Promise<void> {
    try {
      await stopEngine(this.context.engine);
    } finally {
      this.commitsTold.close();
      await this.context.closeStore();
    }
  }

  private async admit(submission: Submission): Promise<SubmitAnswer> {
    const { actor, principal, kinds } = this.context;
    const read = admitted(submission, { actor: actor ?? DEFAULT_ACTOR, principal }, kinds);
    return new Promise((resolve) => this.authority.submit(read, resolve));
  }

  private async submitted(answer: SubmitAnswer): Promise<Submitted> {
    if (answer.kind === 'refused') throw new RefusalError(answer.refusal);
    if (answer.kind === 'purged') throw new RefusalError(purgedRefusal(answer.task.tombstone));
    return submittedOf(this.authority, answer);
  }

  private async verdict(submission: Submission): Promise<SubmitVerdict> {
    try {
      return { ok: true, ...(await this.submitted(await this.admit(submission))) };
    } catch (error) {
      const thrown = asThrown(error);
      if (thrown instanceof ReeveRefusal) return { ok: false, refusal: thrown };
      throw thrown;
    }
  }

  private call<Value>(work: () => Promise<Value>): Promise<Value> {
    return refusing(async () => {
      this.requireOpen();
      return work();
    });
  }

  private async *reading<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item, void, undefined> {
    this.requireOpen();
    try {
      for await (const item of items) yield item;
    } catch (error) {
      throw asThrown(error);
    }
  }

  private requireOpen(): void {
    if (this.closing !== null) throw new ReeveRefusal(refuse('DRAINING', 'the authority is closed'));
  }
}
