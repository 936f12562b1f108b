/**
 * A claim of an in-process worker (lifecycle.md section 7): a session of its own, a lease that lives as long as it is
 * renewed, and words that are numbered here. A claim that is not renewed within its time to live is lost like any other.
 */
import type { Authority } from '../authority/authority.js';
import type { UnaryReports } from '../dispatcher/unary-reports.js';
import type { Reason } from '../kernel/cause.js';
import type { Lease, TaskRecord } from '../kernel/record.js';
import { workerDeadline } from '../kernel/timers.js';
import type { Speaker } from '../services/intents.js';
import { valueOf } from '../services/value-of.js';
import { RefusalError } from '../wire/refusal-error.js';
import type { LeaseInput } from './intent.js';
import { refusing } from './refusal.js';
import { type Saying, sayingOf, weightOf } from './saying.js';
import { type Task, type TaskDetails, detailsOf, taskOf } from './task.js';

/** What has become of a claim after a report. */
export interface Reported {
  /** As it is after the report. */
  readonly task: Task;
  /** Epoch ms at which the lease ends unless it is renewed; null: the claim is over. */
  readonly expiresAtMs: number | null;
  /** Pending: stop, and say `cancelled`. `graceMs` is what is left until the lease is revoked; null: never by itself. */
  readonly cancel: { readonly reason: Reason | null; readonly graceMs: number | null } | null;
}

export interface ClaimContext {
  readonly authority: Authority;
  readonly reports: UnaryReports;
  readonly speaker: Speaker;
  /** Throws once the authority is closed. */
  readonly requireOpen: () => void;
}

export class Claim {
  readonly taskId: string;
  readonly generation: number;
  /** With the generation the fencing token for outside resources. */
  readonly epoch: number;
  readonly attempt: number;
  /** Epoch ms by which the attempt must be over; null: no limit. */
  readonly deadlineAtMs: number | null;
  /** Proves the lease in a transition. */
  readonly lease: LeaseInput;
  private answered = 0;
  /** Reports are judged one after another: each is numbered from where the last was answered. */
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly context: ClaimContext,
    record: TaskRecord,
    lease: Lease,
    /** As it was claimed, with args, last checkpoint and resume input. */
    readonly task: TaskDetails,
  ) {
    const { taskId } = record.admission;
    this.taskId = taskId;
    this.generation = record.generation;
    this.epoch = lease.epoch;
    this.attempt = record.attempt;
    this.deadlineAtMs = workerDeadline(record);
    const token = context.authority.tokens.ofClaim(taskId, lease.epoch).leaseToken;
    this.lease = { generationId: record.generationId, epoch: lease.epoch, token };
    this.answered = lease.eventSeq;
  }

  /** Of a record that holds its lease. Throws RefusalError when its history cannot be read. */
  static async of(context: ClaimContext, record: TaskRecord, lease: Lease): Promise<Claim> {
    return new Claim(context, record, lease, await detailsOf(context.authority, record));
  }

  /**
   * Says what happened, in this order, and renews the lease; nothing to say only renews. Throws the refusal of the first
   * event that was refused: ILLEGAL_EVENT, LEASE_LOST, CANCELLATION_FENCED, CHILDREN_ACTIVE, …; the other events of the
   * report are judged each on its own. After OUTCOME_UNKNOWN the same report may be made again: nothing is said twice.
   */
  report(...sayings: readonly Saying[]): Promise<Reported> {
    return this.inTurn(sayings, []);
  }

  /** Renews the lease for its time to live. Throws LEASE_LOST when it is too late. */
  renew(): Promise<Reported> {
    return this.report();
  }

  /** A receipt of the pending cancel request: it has arrived (`delivered`), the work is stopping (`acknowledged`). */
  confirmCancel(receipt: 'delivered' | 'acknowledged'): Promise<Reported> {
    return this.inTurn([], [{ acknowledged: receipt === 'acknowledged' }]);
  }

  private inTurn(sayings: readonly Saying[], receipts: readonly { acknowledged: boolean }[]): Promise<Reported> {
    const reported = this.turn.then(() => refusing(() => this.say(sayings, receipts)));
    this.turn = reported.catch(() => undefined);
    return reported;
  }

  private async say(sayings: readonly Saying[], receipts: readonly { acknowledged: boolean }[]): Promise<Reported> {
    const { authority, reports, speaker, requireOpen } = this.context;
    requireOpen();
    const { taskId, generation, epoch, answered: answeredThrough } = this;
    const events = sayings.map((saying, index) => ({ seq: answeredThrough + 1 + index, saying: sayingOf(saying) }));
    const weightBytes = events.reduce((bytes, { saying }) => bytes + weightOf(saying), 0);
    const before = valueOf(await authority.reads.get(taskId));
    const report = { taskId, generation, epoch, events, weightBytes, answeredThrough, receipts };
    const reported = await reports.report(report, before, speaker);
    if (!reported.ok) throw new RefusalError(reported.refusal);
    const { verdict, session, record } = reported;
    this.answered = Math.max(answeredThrough, verdict.judgedThrough);
    const [first] = verdict.refused;
    if (first !== undefined) throw new RefusalError(first.refusal);
    const held = record.lease?.epoch === epoch;
    return {
      task: taskOf(record),
      expiresAtMs: held && session !== null ? session.expiresAt : null,
      cancel: held ? cancelOf(record, authority.now()) : null,
    };
  }
}

function cancelOf({ cancellation }: TaskRecord, now: number): Reported['cancel'] {
  if (cancellation === null) return null;
  const { reason, graceEndsAt } = cancellation;
  return { reason, graceMs: graceEndsAt === null ? null : Math.max(graceEndsAt - now, 0) };
}
