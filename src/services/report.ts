/**
 * Report: one claim's events, receipts and renewal without a stream (worker_service.proto; lifecycle.md section 7).
 * The lease token proves the claim; what it may still say is judged by the dispatcher, as on a stream.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import { type UnaryReported, UnaryReports } from '../dispatcher/unary-reports.js';
import type { ReportRequest, ReportResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';
import { leaseLost } from '../kernel/decide.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError, malformedField } from '../wire/refusal-error.js';
import { pendingCancel, readReport, type ReportCommand, verdictMessage } from '../wire/report-codec.js';
import { toDuration, toTimestamp } from '../wire/time-values.js';
import type { CallContext } from './call.js';
import { valueOf } from './task-views.js';

export class Reports {
  private readonly reports: UnaryReports;

  constructor(
    private readonly authority: Authority,
    dispatcher: Dispatcher,
  ) {
    this.reports = new UnaryReports(authority, dispatcher.unary);
  }

  async report(request: ReportRequest, context: CallContext): Promise<Fields<typeof ReportResponseSchema>> {
    const command = readReport(request);
    const { taskId, epoch } = command;
    const before = valueOf(await this.authority.reads.get(taskId));
    const { tokens } = this.authority;
    if (!tokens.isLeaseToken(command.leaseToken, taskId, epoch)) throw new RefusalError(leaseLost(before));
    for (const { token, field } of command.receipts) {
      if (!tokens.isCancellationToken(token, taskId, epoch)) throw malformedField(field, 'is not that of this claim');
    }
    const reported = await this.reports.report(command, before, context);
    if (!reported.ok) throw new RefusalError(reported.refusal);
    return this.answer(command, reported);
  }

  private answer(
    { taskId, epoch }: ReportCommand,
    { verdict, session, record }: Extract<UnaryReported, { ok: true }>,
  ): Fields<typeof ReportResponseSchema> {
    const now = this.authority.now();
    const answer = { verdict: verdictMessage({ taskId, epoch, ...verdict }), serverTime: toTimestamp(now) };
    if (session === null || record.lease?.epoch !== epoch) return answer;
    const cancel = pendingCancel(record, this.authority.tokens.ofClaim(taskId, epoch).cancellationToken, now);
    return {
      ...answer,
      expireTime: toTimestamp(session.expiresAt),
      ttl: toDuration(session.ttlMs),
      ...(cancel === null ? {} : { cancel }),
    };
  }
}
