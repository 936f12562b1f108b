/**
 * Report: one claim's events, receipts and renewal without a stream (worker_service.proto; lifecycle.md section 7).
 * The lease token proves the claim; what it may still say is judged exactly as on a stream.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { ReportRequest, ReportResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { Cause } from '../kernel/cause.js';
import { leaseLost } from '../kernel/decide.js';
import type { TaskRecord } from '../kernel/record.js';
import type { SessionRow } from '../store/commit-plan.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError, malformedField } from '../wire/refusal-error.js';
import { pendingCancel, readReport, type ReportCommand, verdictMessage } from '../wire/report-codec.js';
import { toDuration, toTimestamp } from '../wire/time-values.js';
import type { CallContext } from './call.js';
import { answeredInHistory } from './older-mark.js';
import { valueOf } from './task-views.js';

/** A stream that takes the session over while a report is judged is looked at again. */
const TRIES = 4;

export class Reports {
  constructor(
    private readonly authority: Authority,
    private readonly dispatcher: Dispatcher,
  ) {}

  async report(request: ReportRequest, context: CallContext): Promise<Fields<typeof ReportResponseSchema>> {
    const command = readReport(request);
    const { taskId, epoch } = command;
    const before = valueOf(await this.authority.get(taskId));
    const { tokens } = this.authority;
    if (!tokens.isLeaseToken(command.leaseToken, taskId, epoch)) throw new RefusalError(leaseLost(before));
    for (const { token, field } of command.receipts) {
      if (!tokens.isCancellationToken(token, taskId, epoch)) throw malformedField(field, 'is not that of this claim');
    }
    for (let tries = 1; ; tries++) {
      const session = await this.renewed(before, epoch);
      const verdict = await this.judge(command, session, before, context);
      if (verdict === null && tries < TRIES) continue;
      if (verdict === null) throw new RefusalError(leaseLost(before));
      return this.answer(command, verdict, session);
    }
  }

  /** The session of the claim, heard from; null: the claim is not in force, whatever becomes of what was said. */
  private async renewed(record: TaskRecord, epoch: number): Promise<SessionRow | null> {
    const { lease } = record;
    if (lease?.epoch !== epoch) return null;
    const renewed = await this.dispatcher.unary.renew(lease.sessionId);
    if (renewed.ok) return renewed.row;
    if (renewed.refusal.reason === 'SESSION_GONE') return null;
    throw new RefusalError(renewed.refusal);
  }

  /** Null: the session was attached anew meanwhile. */
  private async judge(
    command: ReportCommand,
    session: SessionRow | null,
    before: TaskRecord,
    context: CallContext,
  ): Promise<Fields<typeof ReportResponseSchema>['verdict'] | null> {
    const { taskId, epoch } = command;
    // Also a claim that is over: a worker whose last answer was lost says its last words again.
    const known = before.lease?.epoch === epoch ? before.lease : before.endedLease;
    const sessionId = known?.epoch === epoch ? known.sessionId : '';
    const cause = causeOf(before.lease?.epoch === epoch ? before.lease.worker : '', context);
    if (session !== null) await this.receive(command, session, cause);
    const attachment = session?.attachment ?? null;
    // A session that is gone may have its lease still, until the reaper comes to it: its word is no longer taken.
    const speaker = session === null && before.lease?.epoch === epoch ? '' : sessionId;
    const answeredThrough = Math.max(command.answeredThrough, await this.olderMark(command, before));
    const outcome = await this.dispatcher.unary.report(speaker, attachment, { ...command, answeredThrough }, cause);
    if (outcome.kind === 'refused') {
      if (outcome.refusal.reason === 'SESSION_GONE') return null;
      throw new RefusalError(outcome.refusal);
    }
    const lost = outcome.refused.find(({ refusal }) => refusal.reason === 'LEASE_LOST');
    // Not when something before it was judged: that verdict has to reach the caller, and tells the loss as well.
    if (lost !== undefined && outcome.judgedThrough < (command.events[0]?.seq ?? 0)) {
      throw new RefusalError(lost.refusal);
    }
    if (session === null && command.events.length === 0) {
      throw new RefusalError(leaseLost(valueOf(await this.authority.get(taskId))));
    }
    const { judgedThrough, committedSequence, refused } = outcome;
    return verdictMessage({ taskId, epoch, judgedThrough, committedSequence, refused });
  }

  /** Of a claim that the record no longer knows: a worker that lost an answer may be that late. */
  private async olderMark({ taskId, epoch, events }: ReportCommand, record: TaskRecord): Promise<number> {
    const isKnown = record.lease?.epoch === epoch || record.endedLease?.epoch === epoch;
    if (isKnown || epoch >= record.epoch || events.length === 0) return 0;
    return answeredInHistory(this.authority, taskId, epoch);
  }

  private async receive({ taskId, epoch, receipts }: ReportCommand, session: SessionRow, cause: Cause): Promise<void> {
    const { sessionId, attachment } = session;
    for (const { acknowledged } of receipts) {
      const answer = await this.authority.apply({
        taskId,
        intent: { kind: 'receipt', lease: { epoch, sessionId }, acknowledged, cause },
        session: { sessionId, attachment, needs: 'not_gone' },
      });
      // A lease that is lost is told by the verdict on what else is said, or by the answer.
      const passing = answer.kind === 'refused' && ['LEASE_LOST', 'SESSION_GONE'].includes(answer.refusal.reason);
      if (answer.kind === 'refused' && !passing) throw new RefusalError(answer.refusal);
    }
  }

  private async answer(
    { taskId, epoch }: ReportCommand,
    verdict: Fields<typeof ReportResponseSchema>['verdict'],
    session: SessionRow | null,
  ): Promise<Fields<typeof ReportResponseSchema>> {
    const now = this.authority.now();
    const record = valueOf(await this.authority.get(taskId));
    const answer = { ...(verdict === undefined ? {} : { verdict }), serverTime: toTimestamp(now) };
    if (session === null) return answer;
    if (record.lease?.epoch !== epoch) {
      await this.dispatcher.unary.end(session);
      return answer;
    }
    const cancel = pendingCancel(record, this.authority.tokens.ofClaim(taskId, epoch).cancellationToken, now);
    return {
      ...answer,
      expireTime: toTimestamp(session.expiresAt),
      ttl: toDuration(session.ttlMs),
      ...(cancel === null ? {} : { cancel }),
    };
  }
}

function causeOf(worker: string, { principal, source }: CallContext): Cause {
  return {
    actor: { type: 'worker', id: worker },
    principal,
    source,
    reason: null,
    causation: null,
    authoritativeAt: null,
  };
}
