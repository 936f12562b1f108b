/**
 * The unit of a repair: a record written over whatever is stored of it, and nothing else in its plan.
 */
import type { Draft } from '../kernel/draft.js';
import { routeKeyOf } from '../kernel/placement.js';
import type { CommitPlan, PlanVerdict } from '../store/commit-plan.js';
import { type IndexRules, placementIndex } from './placement-index.js';
import type { Committed } from './publisher.js';
import type { RepairRequest } from './repair-work.js';
import { Answers } from './unit-answers.js';

export class RepairUnit extends Answers {
  readonly kind = 'repair';

  constructor(
    private readonly request: RepairRequest,
    private readonly draft: Draft,
  ) {
    super();
  }

  plan(rules: IndexRules): CommitPlan {
    const { fingerprint, rederive, recount, ledger, data, links } = this.request;
    const { record, events } = this.draft;
    const { admission } = record;
    const repairs = events.map((event) => ({
      taskId: admission.taskId,
      fingerprint,
      record,
      routeKey: routeKeyOf(admission),
      index: placementIndex(record, rules),
      event,
      rederive,
      recount,
      redact: data.redacted,
    }));
    return {
      recordReads: [],
      sessionReads: [],
      records: [],
      sessions: [],
      ledger: [ledger],
      diagnostics: [],
      ...(links.length === 0 ? {} : { links }),
      repairs,
    };
  }

  committed(verdict: Extract<PlanVerdict, { kind: 'committed' }>): Committed | null {
    const { record, events } = this.draft;
    const [firstSequence] = verdict.firstSequences;
    const [link] = verdict.links;
    if (firstSequence === undefined || link === undefined) return null;
    const { taskId } = record.admission;
    return { taskId, before: this.request.before, record, events, firstSequence, link };
  }
}
