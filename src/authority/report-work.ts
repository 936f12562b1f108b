/**
 * The work of a worker's report: one frame's worth of events about one claim, judged in their order and committed
 * together (lifecycle.md section 7). Answered after the commit, with the number judged through and what was refused.
 */
import type { WorkerReport } from '../kernel/intent.js';
import type { Refusal } from '../kernel/refusal.js';
import { type ReportAnswer, judgeReport } from '../kernel/worker-report.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { Batch } from './batch.js';
import { lostStanding, sessionGone } from './session-work.js';
import type { RecordUnit } from './unit.js';
import type { Work } from './work.js';

export type ReportOutcome =
  | (ReportAnswer & {
      readonly kind: 'judged';
      /** The sequence of the last event committed for this report; 0 when nothing was. */
      readonly committedSequence: number;
    })
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export interface ReportRequest {
  readonly taskId: string;
  readonly report: WorkerReport;
  /** The attachment under which the worker spoke; null when a lease token proved the lease. */
  readonly attachment: number | null;
  readonly weightBytes: number;
  /** The mark as it is known when the report is judged: one before it may have been answered meanwhile. */
  readonly answeredThrough?: () => number;
}

/** How much of what a stale worker said is kept. */
const MAX_DIAGNOSTIC_CHARACTERS = 2_048;

export class ReportWork implements Work {
  constructor(
    private readonly request: ReportRequest,
    private readonly settle: (outcome: ReportOutcome) => void,
  ) {}

  get taskId(): string {
    return this.request.taskId;
  }

  get weightBytes(): number {
    return this.request.weightBytes;
  }

  judge(batch: Batch): void {
    const { taskId, report, attachment } = this.request;
    const located = batch.locate(taskId);
    if (located.kind === 'refused') return this.settle(located);
    const { unit } = located;
    const { draft } = unit;
    const { sessionId, epoch } = report;
    const before = draft.events.length;
    const answered = Math.max(this.request.answeredThrough?.() ?? 0, unit.answeredThrough(report));
    const answer = judgeReport(draft, { ...report, answeredThrough: Math.max(report.answeredThrough, answered) });
    unit.noteAnswered(report, answer.judgedThrough);
    const through = draft.events.length;
    if (attachment !== null) unit.reads({ sessionId, attachment, needs: 'not_gone' });
    if (epoch <= draft.record.epoch) this.noteStale(unit, answer, batch.now);
    unit.answer(this, (commit) => {
      const committedSequence = commit === null || through === before ? 0 : commit.firstSequence + through - 1;
      this.settle({ kind: 'judged', ...answer, committedSequence });
    });
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'retry' | 'answered' {
    if (!lostStanding(verdict, this.request.report.sessionId)) return 'retry';
    this.refuse(sessionGone());
    return 'answered';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }

  /** What a stale worker said is kept as a diagnostic and never applied. */
  private noteStale(unit: RecordUnit, answer: ReportAnswer, at: number): void {
    const { taskId, report } = this.request;
    for (const { seq, refusal } of answer.refused) {
      if (refusal.reason !== 'LEASE_LOST') continue;
      const said = report.events.find((event) => event.seq === seq)?.saying;
      const text = JSON.stringify({ seq, session: report.sessionId, said }).slice(0, MAX_DIAGNOSTIC_CHARACTERS);
      unit.note({ taskId, epoch: report.epoch, at, text });
    }
  }
}
