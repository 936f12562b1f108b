// Plans as the authority makes them, by the real kernel, for tests of stores.

import { applicationHash } from '../../src/kernel/admission/application-hash.js';
import type { Application } from '../../src/kernel/admission/application.js';
import type { ParentLink } from '../../src/kernel/admission/family-policy.js';
import { resolvePolicy } from '../../src/kernel/admission/policy.js';
import type { Cause } from '../../src/kernel/cause.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import type { WorkerSaying } from '../../src/kernel/intent.js';
import { type PermitRules, permitsOf } from '../../src/kernel/permits.js';
import { routeKeyOf } from '../../src/kernel/placement.js';
import type { Admission, TaskRecord } from '../../src/kernel/record.js';
import { judgeReport } from '../../src/kernel/worker-report.js';
import { tombstoneOf } from '../../src/kernel/tombstone.js';
import { type IndexRules, PLAIN_RULES, placementIndex } from '../../src/authority/placement-index.js';
import type { AuditedTask } from '../../src/store/audit-rows.js';
import type { CommitPlan, RecordRead, SessionEnd, SessionRow } from '../../src/store/commit-plan.js';

export const NOW = 1_800_000_000_000;

/** Keys that begin with `two` have two permits, others one; `gpu` is serialized. */
export const RULES: PermitRules = {
  keyLimits: [{ pattern: 'two*', limit: 2 }],
  capabilities: new Map([['gpu', 'serialization']]),
};

const INDEX_RULES: IndexRules = { ...PLAIN_RULES, permitsOf: (admission) => permitsOf(admission, RULES) };

const NOTHING: CommitPlan = {
  recordReads: [],
  sessionReads: [],
  records: [],
  sessions: [],
  ledger: [],
  diagnostics: [],
};

export function planOf(parts: Partial<CommitPlan>): CommitPlan {
  return { ...NOTHING, ...parts };
}

/** Several plans as one that stands or falls whole. */
export function joined(...plans: readonly CommitPlan[]): CommitPlan {
  return {
    recordReads: plans.flatMap((plan) => plan.recordReads),
    sessionReads: plans.flatMap((plan) => plan.sessionReads),
    records: plans.flatMap((plan) => plan.records),
    sessions: plans.flatMap((plan) => plan.sessions),
    ledger: plans.flatMap((plan) => plan.ledger),
    diagnostics: plans.flatMap((plan) => plan.diagnostics),
    links: plans.flatMap((plan) => plan.links ?? []),
    ...plans.map(({ purge }) => (purge === undefined ? {} : { purge })).reduce((all, one) => ({ ...all, ...one }), {}),
    permits: plans.flatMap((plan) => plan.permits ?? []),
  };
}

/** An operator's repair of what was seen, by one event on `base`. */
export function repaired(seen: AuditedTask, base: TaskRecord, redact: number | null = null): Step {
  const draft = Draft.of(base, base.updatedAt);
  const repair = redact === null ? 'rebuild_record' : 'redact_payload';
  const data = { repair, mended: [], redacted: redact, accepted: null } as const;
  draft.append({ type: 'reeve.task.repaired', data }, { cause: PRODUCER });
  const { record, events } = draft;
  const write = {
    record,
    index: placementIndex(record, INDEX_RULES),
    routeKey: routeKeyOf(record.admission),
    rederive: true,
    recount: true,
    redact,
  };
  const { fingerprint } = seen;
  const repairs = events.map((event) => ({ taskId: record.admission.taskId, fingerprint, ...write, event }));
  return { plan: planOf({ repairs }), record };
}

/** A plan and the record it leaves when it commits. */
export interface Step {
  readonly plan: CommitPlan;
  readonly record: TaskRecord;
}

export interface TaskShape {
  readonly taskId?: string;
  readonly namespace?: string;
  readonly queue?: string;
  readonly key?: string;
  readonly kind?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly priority?: number;
  readonly startByMs?: number;
  readonly argsJson?: string;
  readonly at?: number;
  readonly notBeforeAt?: number;
  readonly parent?: ParentLink;
  readonly retentionMs?: number;
  readonly concurrencyKey?: string;
  readonly capabilities?: readonly string[];
}

let made = 0;

export function submitted(shape: TaskShape = {}): Step {
  made += 1;
  const taskId = shape.taskId ?? `task-${String(made).padStart(6, '0')}`;
  const draft = Draft.admit(admissionOf(shape, taskId), `${taskId}-g1`, shape.notBeforeAt ?? null, PRODUCER);
  const { record, events } = draft;
  const { admission } = record;
  const insert = {
    kind: 'insert',
    admission,
    routeKey: routeKeyOf(admission),
    record,
    index: placementIndex(record, INDEX_RULES),
    events,
  } as const;
  return { plan: planOf({ records: [insert] }), record };
}

function admissionOf(shape: TaskShape, taskId: string): Admission {
  const { labels = {}, priority = 0, startByMs = null, concurrencyKey = null, capabilities = [] } = shape;
  const { parent, retentionMs } = shape;
  const policy = resolvePolicy({ labels, priority, startByMs, parent, concurrencyKey, retentionMs });
  if (!policy.ok) throw new Error(JSON.stringify(policy.refusal));
  const application: Application = {
    actionKind: shape.kind ?? 'agent',
    argsJson: shape.argsJson ?? '{"n":1}',
    executionTarget: 'host',
    requiredCapabilities: capabilities,
    libraryRef: null,
    libraryContentHash: null,
  };
  return {
    taskId,
    namespace: shape.namespace ?? 'default',
    queue: shape.queue ?? 'main',
    idempotencyKey: shape.key ?? `key of ${taskId}`,
    application,
    applicationHash: applicationHash(application),
    policy: policy.value,
    source: 'rpc',
    scheduleId: null,
    actor: PRODUCER.actor,
    principal: PRODUCER.principal,
    traceContext: {},
    createdAt: shape.at ?? NOW,
  };
}

export function changed(record: TaskRecord, change: (draft: Draft) => void, at: number = record.updatedAt): Step {
  const draft = Draft.of(record, at);
  change(draft);
  const { taskId } = record.admission;
  const index = placementIndex(draft.record, INDEX_RULES, draft.events);
  const update = { kind: 'update', taskId, baseVersion: record.lastEvent, record: draft.record, index } as const;
  return { plan: planOf({ records: [{ ...update, events: draft.events }] }), record: draft.record };
}

export function claimed(record: TaskRecord, sessionId = 'session-1', at?: number): Step {
  const claim = { sessionId, worker: 'worker-1', sessionTtlMs: 30_000, acceptTimeoutMs: 5_000, cause: WORKER } as const;
  return changed(record, (draft) => judge(draft, { kind: 'claim', ...claim }), at);
}

/** What the holder says next, its numbers running on. */
export function reported(record: TaskRecord, ...sayings: readonly WorkerSaying[]): Step {
  const { lease, generation } = record;
  if (lease === null) throw new Error('nobody holds this task');
  const events = sayings.map((saying, index) => ({ seq: lease.eventSeq + index + 1, saying }));
  const proof = { sessionId: lease.sessionId, generation, epoch: lease.epoch, answeredThrough: 0 };
  return changed(record, (draft) => judgeReport(draft, { ...proof, events, chance: 0, cause: WORKER }));
}

export function completed(record: TaskRecord, resultJson = '{"ok":true}'): Step {
  return reported(record, { kind: 'accepted' }, { kind: 'started' }, { kind: 'completed', resultJson, ending: null });
}

export function cancelled(record: TaskRecord): Step {
  return changed(record, (draft) => judge(draft, { kind: 'request_cancellation', graceMs: null, cause: PRODUCER }));
}

/** A finished task in its next generation. */
export function resumed(record: TaskRecord): Step {
  const ids = { newGenerationId: `g${String(record.generation + 1)}`, spareGenerationId: 'spare' };
  return changed(record, (draft) => judge(draft, { kind: 'resume', ...ids, inputJson: null, cause: PRODUCER }));
}

/** Takes a finished task away. */
export function purgeOf(record: TaskRecord, recordReads: readonly RecordRead[] = []): CommitPlan {
  const tombstone = tombstoneOf(record, NOW);
  if (tombstone === null) throw new Error('the task lives');
  return planOf({ recordReads, purge: { taskId: record.admission.taskId, version: record.lastEvent, tombstone } });
}

export function outputOf(outputJson: string): WorkerSaying {
  return { kind: 'output', output: { outputJson, binaryBase64: null, contentType: null, truncated: false } };
}

export function sessionRow(sessionId: string, given: Partial<SessionRow> = {}): SessionRow {
  return {
    sessionId,
    state: 'live',
    expiresAt: NOW + 30_000,
    attachment: 1,
    ttlMs: 30_000,
    lingerMs: null,
    workerName: 'worker-1',
    helloJson: '{"queues":["main"]}',
    createdAt: NOW,
    ...given,
  };
}

/** What is said of a session that ends. */
export function endOf(at: number = NOW, given: Partial<SessionEnd> = {}): SessionEnd {
  return { at, cause: 'stream_ended', forgetAt: at + 60_000, ...given };
}

export const OPERATOR: Cause = causeOf('operator', 'tester');
const PRODUCER: Cause = causeOf('producer', 'tester');
const WORKER: Cause = causeOf('worker', 'worker-1');

function causeOf(type: 'producer' | 'worker' | 'operator', id: string): Cause {
  return {
    actor: { type, id },
    principal: 'anonymous',
    source: 'rpc',
    reason: null,
    causation: null,
    authoritativeAt: null,
  };
}
