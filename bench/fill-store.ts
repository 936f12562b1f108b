/**
 * Fills a SQLite store through its port with real lives of tasks: some ended long ago, some still queued.
 */
import { resolvePolicy } from '../src/kernel/admission/policy.js';
import { applicationHash } from '../src/kernel/admission/application-hash.js';
import type { Application } from '../src/kernel/admission/application.js';
import { placementIndex } from '../src/authority/placement-index.js';
import type { Cause } from '../src/kernel/cause.js';
import { judge } from '../src/kernel/decide.js';
import { Draft } from '../src/kernel/draft.js';
import { routeKeyOf } from '../src/kernel/placement.js';
import type { CommitPlan, RecordInsert } from '../src/store/commit-plan.js';
import { MAX_PLANS_PER_BATCH } from '../src/store/commit-plan.js';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.js';
import { systemRandom } from '../src/lib/random.js';

export interface Filling {
  readonly path: string;
  readonly ended: number;
  readonly queued: number;
  readonly queue: string;
  /** All of them share it, and with the default limit all but the first of those queued wait. */
  readonly concurrencyKey?: string;
}

const CAUSE: Cause = {
  actor: { type: 'producer', id: 'fill' },
  principal: 'anonymous',
  source: 'embedded',
  reason: null,
  causation: null,
  authoritativeAt: null,
};

/** Resolves with the ms it took. */
export async function fillStore({ path, ended, queued, queue, concurrencyKey }: Filling): Promise<number> {
  const store = await openSqliteStore({ path });
  const total = ended + queued;
  const startedAt = Date.now() - total;
  const begunAt = performance.now();
  for (let at = 0; at < total; at += MAX_PLANS_PER_BATCH) {
    const plans: CommitPlan[] = [];
    for (let index = at; index < Math.min(at + MAX_PLANS_PER_BATCH, total); index++) {
      plans.push(planOf(insertOf(index, index < ended, queue, startedAt + index, concurrencyKey)));
    }
    await store.commit({ batchId: systemRandom.uuidV7(), plans });
  }
  const tookMs = performance.now() - begunAt;
  await store.close();
  return tookMs;
}

function insertOf(index: number, over: boolean, queue: string, at: number, concurrencyKey?: string): RecordInsert {
  const policy = resolvePolicy({ concurrencyKey });
  if (!policy.ok) throw new Error(policy.refusal.detail);
  const application: Application = {
    actionKind: 'agent',
    argsJson: `{"index":${String(index)},"prompt":"one of many"}`,
    executionTarget: 'host',
    requiredCapabilities: [],
    libraryRef: null,
    libraryContentHash: null,
  };
  const draft = Draft.admit(
    {
      taskId: systemRandom.uuidV7(),
      namespace: 'default',
      queue,
      idempotencyKey: `fill-${queue}-${String(index)}`,
      application,
      applicationHash: applicationHash(application),
      policy: policy.value,
      source: 'embedded',
      scheduleId: null,
      actor: CAUSE.actor,
      principal: 'anonymous',
      traceContext: {},
      createdAt: at,
    },
    systemRandom.uuidV7(),
    null,
    CAUSE,
  );
  if (over) judge(draft, { kind: 'request_cancellation', graceMs: null, cause: CAUSE });
  const { record, events } = draft;
  const { admission } = record;
  const placed = placementIndex(record);
  return { kind: 'insert', admission, routeKey: routeKeyOf(admission), record, index: placed, events };
}

function planOf(insert: RecordInsert): CommitPlan {
  return { recordReads: [], sessionReads: [], records: [insert], sessions: [], ledger: [], diagnostics: [] };
}
