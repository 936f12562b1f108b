/**
 * What a holder without a stream says of its claim, in one report: renewal, receipts, events, in that order, judged
 * exactly as on a stream (lifecycle.md section 7). Whoever calls has proved that it is the holder.
 */
import type { Authority } from '../authority/authority.js';
import type { ReportOutcome } from '../authority/report-work.js';
import type { Read } from '../authority/task-reader.js';
import type { Cause } from '../kernel/cause.js';
import { leaseLost } from '../kernel/decide.js';
import type { TaskRecord } from '../kernel/record.js';
import type { Refusal } from '../kernel/refusal.js';
import type { SessionRow } from '../store/commit-plan.js';
import type { ClaimReport } from './dispatcher.js';
import { answeredInHistory } from './older-mark.js';
import type { UnarySessions } from './unary-sessions.js';

export interface UnaryReport extends ClaimReport {
  readonly answeredThrough: number;
  readonly receipts: readonly { readonly acknowledged: boolean }[];
}

export type UnaryReported =
  | {
      readonly ok: true;
      readonly verdict: Extract<ReportOutcome, { kind: 'judged' }>;
      /** The session that was renewed; null: the claim was over before. */
      readonly session: SessionRow | null;
      /** As it is after the report. */
      readonly record: TaskRecord;
    }
  | { readonly ok: false; readonly refusal: Refusal };

type Judged = ReportOutcome | 'attached_anew';

/** A stream that takes the session over while a report is judged is looked at again. */
const TRIES = 4;

export class UnaryReports {
  constructor(
    private readonly authority: Authority,
    private readonly sessions: UnarySessions,
  ) {}

  /** `before`: the task as it was when the report came in. */
  async report(
    report: UnaryReport,
    before: TaskRecord,
    by: Pick<Cause, 'principal' | 'source'>,
  ): Promise<UnaryReported> {
    for (let tries = 0; tries < TRIES; tries++) {
      const renewed = await this.renewed(before, report.epoch);
      if (!renewed.ok) return renewed;
      const judged = await this.judge(report, renewed.row, before, by);
      if (judged === 'attached_anew') continue;
      return judged.kind === 'refused'
        ? { ok: false, refusal: judged.refusal }
        : this.answer(report, judged, renewed.row);
    }
    return { ok: false, refusal: leaseLost(before) };
  }

  /** The session of the claim, heard from; null: the claim is not in force, whatever becomes of what was said. */
  private async renewed(
    { lease }: TaskRecord,
    epoch: number,
  ): Promise<
    { readonly ok: true; readonly row: SessionRow | null } | { readonly ok: false; readonly refusal: Refusal }
  > {
    if (lease?.epoch !== epoch) return { ok: true, row: null };
    const renewed = await this.sessions.renew(lease.sessionId);
    if (!renewed.ok && renewed.refusal.reason === 'SESSION_GONE') return { ok: true, row: null };
    return renewed;
  }

  private async judge(
    report: UnaryReport,
    session: SessionRow | null,
    before: TaskRecord,
    by: Pick<Cause, 'principal' | 'source'>,
  ): Promise<Judged> {
    const { taskId, epoch, events } = report;
    const current = before.lease?.epoch === epoch;
    // Also a claim that is over: a worker whose last answer was lost says its last words again.
    const known = current ? before.lease : before.endedLease;
    const sessionId = known?.epoch === epoch ? known.sessionId : '';
    const cause = causeOf(current ? (before.lease?.worker ?? '') : '', by);
    const refusal = session === null ? null : await this.receive(report, session, cause);
    if (refusal !== null) return { kind: 'refused', refusal };
    // A session that is gone may have its lease still, until the reaper comes to it: its word is no longer taken.
    const speaker = session === null && current ? '' : sessionId;
    const older = await this.olderMark(report, before);
    if (!older.ok) return { kind: 'refused', refusal: older.refusal };
    const answeredThrough = Math.max(report.answeredThrough, older.value);
    const said = { ...report, answeredThrough };
    const outcome = await this.sessions.report(speaker, session?.attachment ?? null, said, cause);
    if (outcome.kind === 'refused') return outcome.refusal.reason === 'SESSION_GONE' ? 'attached_anew' : outcome;
    const lost = outcome.refused.find((refused) => refused.refusal.reason === 'LEASE_LOST');
    // Not when something before it was judged: that verdict has to reach the caller, and tells the loss as well.
    if (lost !== undefined && outcome.judgedThrough < (events[0]?.seq ?? 0)) {
      return { kind: 'refused', refusal: lost.refusal };
    }
    if (session !== null || events.length > 0) return outcome;
    const read = await this.authority.reads.get(taskId);
    return { kind: 'refused', refusal: read.ok ? leaseLost(read.value) : read.refusal };
  }

  /** Of a claim that the record no longer knows: a worker that lost an answer may be that late. */
  private async olderMark({ taskId, epoch, events }: UnaryReport, record: TaskRecord): Promise<Read<number>> {
    const isKnown = record.lease?.epoch === epoch || record.endedLease?.epoch === epoch;
    if (isKnown || epoch >= record.epoch || events.length === 0) return { ok: true, value: 0 };
    return answeredInHistory(this.authority, taskId, epoch);
  }

  private async receive(
    { taskId, epoch, receipts }: UnaryReport,
    { sessionId, attachment }: SessionRow,
    cause: Cause,
  ): Promise<Refusal | null> {
    for (const { acknowledged } of receipts) {
      const answer = await this.authority.apply({
        taskId,
        intent: { kind: 'receipt', lease: { epoch, sessionId }, acknowledged, cause },
        session: { sessionId, attachment, needs: 'not_gone' },
      });
      // A lease that is lost is told by the verdict on what else is said, or by the answer.
      const passing = answer.kind === 'refused' && ['LEASE_LOST', 'SESSION_GONE'].includes(answer.refusal.reason);
      if (answer.kind === 'refused' && !passing) return answer.refusal;
    }
    return null;
  }

  private async answer(
    { taskId, epoch }: UnaryReport,
    verdict: Extract<ReportOutcome, { kind: 'judged' }>,
    session: SessionRow | null,
  ): Promise<UnaryReported> {
    const read = await this.authority.reads.get(taskId);
    if (!read.ok) return read;
    if (session !== null && read.value.lease?.epoch !== epoch) await this.sessions.end(session);
    return { ok: true, verdict, session, record: read.value };
  }
}

function causeOf(worker: string, { principal, source }: Pick<Cause, 'principal' | 'source'>): Cause {
  return {
    actor: { type: 'worker', id: worker },
    principal,
    source,
    reason: null,
    causation: null,
    authoritativeAt: null,
  };
}
