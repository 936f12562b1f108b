// The store of the explored worlds, as a value: records, keys, sessions, ledger and families, and the guards that the
// port promises. A plan either leaves a new store or is lost whole. Any guard can be taken away, to see that it is missed.

import type { DependencyCondition } from '../../src/kernel/admission/family-policy.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitPlan, LedgerEntry, PlanVerdict, SessionRow } from '../../src/store/commit-plan.js';
import { brokenLink, type FamilyView } from '../../src/store/family-guards.js';
import type { LinkWrite, Propagation } from '../../src/store/family-rows.js';
import { sessionIdOf } from '../../src/store/plan-shape.js';
import { sessionAfter, sessionHolds } from '../../src/store/session-guards.js';

type Rows<Value> = ReadonlyMap<string, Value>;

export interface ModelFamily {
  /** By `parent child`: whether it is attached and lives. */
  readonly children: Rows<boolean>;
  /** By `upstream generation waiter`. */
  readonly edges: Rows<DependencyCondition>;
  /** Counted by addition, beside the rows that they count. */
  readonly liveChildren: Rows<number>;
  readonly unsatisfied: Rows<number>;
  /** By `task generation`. */
  readonly propagations: Rows<Propagation>;
}

export interface ModelStore {
  readonly records: Rows<TaskRecord>;
  /** By idempotency key. */
  readonly keys: Rows<string>;
  readonly sessions: Rows<SessionRow>;
  /** By `task key`. */
  readonly ledger: Rows<LedgerEntry>;
  readonly family: ModelFamily;
}

export const GUARDS = ['keys', 'ledger', 'versions', 'reads', 'own batch', 'sessions', 'families'] as const;
export type StoreGuard = (typeof GUARDS)[number];

export const EMPTY_STORE: ModelStore = {
  records: new Map(),
  keys: new Map(),
  sessions: new Map(),
  ledger: new Map(),
  family: {
    children: new Map(),
    edges: new Map(),
    liveChildren: new Map(),
    unsatisfied: new Map(),
    propagations: new Map(),
  },
};

export type Written =
  | { readonly verdict: Extract<PlanVerdict, { kind: 'committed' }>; readonly store: ModelStore }
  | { readonly verdict: Exclude<PlanVerdict, { kind: 'committed' }>; readonly store: null };

/** `changed`: the tasks that the batch has written so far. */
export function write(
  store: ModelStore,
  plan: CommitPlan,
  changed: ReadonlySet<string>,
  missing: StoreGuard | null = null,
): Written {
  for (const guard of GUARDS) {
    const lost = guard === missing ? null : CHECKS[guard](store, plan, changed);
    if (lost !== null) return { verdict: lost, store: null };
  }
  const firstSequences = plan.records.map(() => 1);
  // Nothing that is decided on depends on a link.
  const links = plan.records.map(() => '');
  return { verdict: { kind: 'committed', firstSequences, links }, store: written(store, plan) };
}

type Lost = Exclude<PlanVerdict, { kind: 'committed' }>;

type Check = (store: ModelStore, plan: CommitPlan, changed: ReadonlySet<string>) => Lost | null;

const CHECKS: Readonly<Record<StoreGuard, Check>> = {
  keys(store, plan) {
    for (const record of plan.records) {
      if (record.kind !== 'insert') continue;
      const { idempotencyKey, taskId } = record.admission;
      const holder = store.keys.get(idempotencyKey);
      if (holder !== undefined) return { kind: 'duplicate', taskId: holder };
      if (store.records.has(taskId)) return { kind: 'task_id_taken', taskId };
    }
    return null;
  },
  ledger(store, plan) {
    for (const entry of plan.ledger) {
      const original = store.ledger.get(`${entry.taskId} ${entry.intentKey}`);
      if (original !== undefined) return { kind: 'repeated', original };
    }
    return null;
  },
  versions(store, plan) {
    for (const record of plan.records) {
      if (record.kind === 'insert' || store.records.get(record.taskId)?.lastEvent === record.baseVersion) continue;
      return { kind: 'conflict', subject: 'record', id: record.taskId };
    }
    return null;
  },
  reads(store, plan) {
    for (const { taskId, version } of plan.recordReads) {
      if (store.records.get(taskId)?.lastEvent === version) continue;
      return { kind: 'conflict', subject: 'record', id: taskId };
    }
    return null;
  },
  'own batch'(_store, plan, changed) {
    const lost = plan.recordReads.find(({ taskId, ofBatch }) => ofBatch === true && !changed.has(taskId));
    return lost === undefined ? null : { kind: 'conflict', subject: 'record', id: lost.taskId };
  },
  families(store, { links = [] }) {
    const id = links.length === 0 ? null : brokenLink(links, viewOf(store.family));
    return id === null ? null : { kind: 'conflict', subject: 'family', id };
  },
  sessions(store, plan) {
    const row = (id: string): SessionRow | null => store.sessions.get(id) ?? null;
    for (const read of plan.sessionReads) {
      const id = read.sessionId;
      if (!sessionHolds(row(id), read)) return { kind: 'conflict', subject: 'session', id };
    }
    for (const change of plan.sessions) {
      const id = sessionIdOf(change);
      if (sessionAfter(row(id), change) === null) return { kind: 'conflict', subject: 'session', id };
    }
    return null;
  },
};

function viewOf(family: ModelFamily): FamilyView {
  return {
    childLives: (parentId, childId) => family.children.get(`${parentId} ${childId}`) ?? null,
    hasEdge: (upstreamId, generation, waiterId) => family.edges.has(edgeKey(upstreamId, generation, waiterId)),
    counts: (taskId) => ({
      liveChildren: family.liveChildren.get(taskId) ?? 0,
      unsatisfied: family.unsatisfied.get(taskId) ?? 0,
    }),
    propagationOf: (taskId, generation) => family.propagations.get(`${taskId} ${generation}`)?.eventNumber ?? null,
    isAwaited: (taskId) => namesTask(family.edges, taskId),
    hasNews: (taskId) => namesTask(family.propagations, taskId),
  };
}

/** Keys begin with the task that they are about. */
function namesTask(rows: ReadonlyMap<string, unknown>, taskId: string): boolean {
  return [...rows.keys()].some((key) => key.startsWith(`${taskId} `));
}

function written(store: ModelStore, plan: CommitPlan): ModelStore {
  const links = plan.links ?? [];
  // Diagnostics are no part of what is decided on.
  if (plan.records.length + plan.sessions.length + plan.ledger.length + links.length === 0) return store;
  let { records, keys, sessions, ledger, family } = store;
  for (const { record } of plan.records) {
    records = having(records, record.admission.taskId, record);
    keys = having(keys, record.admission.idempotencyKey, record.admission.taskId);
  }
  for (const change of plan.sessions) {
    const row = sessionAfter(sessions.get(sessionIdOf(change)) ?? null, change);
    if (row !== null) sessions = having(sessions, row.sessionId, row);
  }
  for (const entry of plan.ledger) ledger = having(ledger, `${entry.taskId} ${entry.intentKey}`, entry);
  for (const link of links) family = linked(family, link);
  return { records, keys, sessions, ledger, family };
}

function linked(family: ModelFamily, link: LinkWrite): ModelFamily {
  switch (link.kind) {
    case 'child_admitted':
      return child(family, link.parentId, link.childId, link.live, link.live ? 1 : 0);
    case 'child_revived':
      return child(family, link.parentId, link.childId, true, 1);
    case 'child_ended':
      return child(family, link.parentId, link.childId, false, -1);
    case 'edge_opened': {
      const edges = having(family.edges, edgeKey(link.upstreamId, link.generation, link.waiterId), link.condition);
      return { ...family, edges, unsatisfied: adding(family.unsatisfied, link.waiterId, 1) };
    }
    case 'edge_closed':
      return withoutEdge(family, edgeKey(link.upstreamId, link.generation, link.waiterId), link.waiterId);
    case 'edges_dropped': {
      const dropped = [...family.edges.keys()].filter((key) => key.endsWith(` ${link.waiterId}`));
      return dropped.reduce((left, key) => withoutEdge(left, key, link.waiterId), family);
    }
    case 'propagation': {
      const key = `${link.row.taskId} ${link.row.generation}`;
      return { ...family, propagations: having(family.propagations, key, link.row) };
    }
    case 'propagated': {
      const key = `${link.row.taskId} ${link.row.generation}`;
      return { ...family, propagations: lacking(family.propagations, key) };
    }
    case 'no_live_children':
    case 'edges_left':
      return family;
  }
}

function child(family: ModelFamily, parentId: string, childId: string, live: boolean, change: number): ModelFamily {
  const children = having(family.children, `${parentId} ${childId}`, live);
  return { ...family, children, liveChildren: adding(family.liveChildren, parentId, change) };
}

function withoutEdge(family: ModelFamily, key: string, waiterId: string): ModelFamily {
  const { edges, unsatisfied } = family;
  return { ...family, edges: lacking(edges, key), unsatisfied: adding(unsatisfied, waiterId, -1) };
}

function edgeKey(upstreamId: string, generation: number, waiterId: string): string {
  return `${upstreamId} ${generation} ${waiterId}`;
}

function having<Value>(rows: Rows<Value>, key: string, value: Value): Rows<Value> {
  return new Map(rows).set(key, value);
}

function lacking<Value>(rows: Rows<Value>, key: string): Rows<Value> {
  const left = new Map(rows);
  left.delete(key);
  return left;
}

function adding(counts: Rows<number>, key: string, change: number): Rows<number> {
  return having(counts, key, (counts.get(key) ?? 0) + change);
}
