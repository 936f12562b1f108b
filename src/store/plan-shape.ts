/**
 * What every batch must look like, checked before any adapter touches its store. A batch that fails here is a defect
 * of the caller: it throws an ordinary error, nothing is written, and no verdict is made of it.
 */
import { type CommitBatch, type CommitPlan, MAX_PLANS_PER_BATCH, type RecordWrite } from './commit-plan.js';

export function assertWellFormed(batch: CommitBatch): void {
  if (batch.plans.length > MAX_PLANS_PER_BATCH) throw new Error(`a batch of ${batch.plans.length} plans`);
  for (const plan of batch.plans) assertPlan(plan);
}

function assertPlan(plan: CommitPlan): void {
  for (const write of plan.records) assertWrite(write);
  if (plan.records.length > 1) assertDistinct(plan.records.map(taskIdOf), 'writes a task');
  if (plan.records.length > 1) {
    const inserts = plan.records.filter((write) => write.kind === 'insert');
    assertDistinct(
      inserts.map(({ admission }) => `${admission.namespace}\n${admission.idempotencyKey}`),
      'takes a key',
    );
  }
  if (plan.purge !== undefined && plan.records.length > 0) throw new Error('a plan that purges writes a record');
  if (plan.sessions.length > 1) assertDistinct(plan.sessions.map(sessionIdOf), 'writes a session');
  if (plan.ledger.length > 1) {
    assertDistinct(
      plan.ledger.map(({ taskId, intentKey }) => `${taskId}\n${intentKey}`),
      'takes a ledger key',
    );
  }
}

function assertWrite(write: RecordWrite): void {
  const { events, record } = write;
  const base = write.kind === 'insert' ? 0 : write.baseVersion;
  const first = events[0];
  const last = events[events.length - 1];
  if (first?.number !== base + 1 || last?.number !== base + events.length || record.lastEvent !== last.number) {
    throw new Error(`a write of ${taskIdOf(write)} whose events do not lead from version ${base} to its record`);
  }
}

export function taskIdOf(write: RecordWrite): string {
  return write.kind === 'insert' ? write.admission.taskId : write.taskId;
}

export function sessionIdOf(write: CommitPlan['sessions'][number]): string {
  return write.kind === 'open' ? write.session.sessionId : write.sessionId;
}

function assertDistinct(keys: readonly string[], what: string): void {
  if (new Set(keys).size !== keys.length) throw new Error(`a plan ${what} twice`);
}
