/**
 * Repairs of single tasks on an operator's word: look, decide, write what was decided if the task still is as it was
 * seen, or look again. Everything is written by the authority, as one event with who, why and what.
 */
import type { Authority } from '../authority/authority.js';
import type { RepairRequest } from '../authority/repair-work.js';
import { authorityCause, type Cause } from '../kernel/cause.js';
import type { RepairKind, TaskEvent } from '../kernel/event.js';
import { reason } from '../kernel/reason-codes.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { Tombstone } from '../kernel/tombstone.js';
import type { LedgerEntry } from '../store/commit-plan.js';
import { REDACTED_JSON } from '../store/history-row.js';
import type { AuditedTask } from '../store/audit-rows.js';
import type { Auditor } from './auditor.js';
import type { Finding } from './findings.js';
import { type InvariantName, invariant } from './invariants.js';
import { PurgedRepairs } from './purged-repairs.js';
import { type RepairPlan, isOfItsHistory, planMending } from './repair-plan.js';
import type { TaskAudit } from './task-audit.js';

/** Lost races, as for any work. */
const MAX_LOOKS = 8;

export interface RepairCommand {
  readonly taskId: string;
  readonly kind: RepairKind;
  /** For `redact_payload`. */
  readonly eventNumber: number;
  /** Null: only to be told what would be done. */
  readonly key: { readonly key: string; readonly contentHash: string } | null;
  readonly cause: Cause;
}

/**
 * `record` is null where the task is still damaged, or was purged; `tombstone` is what is left of it then, null where
 * that cannot be read.
 */
export type RepairAnswer =
  | {
      readonly kind: 'done';
      readonly applied: boolean;
      readonly replayed: boolean;
      readonly findings: readonly Finding[];
      readonly record: TaskRecord | null;
      readonly tombstone: Tombstone | null;
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What was done, before it is looked at what came of it. */
interface Outcome {
  readonly applied: boolean;
  readonly replayed: boolean;
  readonly findings: readonly Finding[];
}

type Planned = Extract<RepairPlan, { kind: 'repair' }>;

export class Repairs {
  private readonly purged: PurgedRepairs;

  constructor(
    private readonly authority: Authority,
    private readonly auditor: Auditor,
  ) {
    this.purged = new PurgedRepairs(authority);
  }

  /** Throws StoreError. */
  async repair(command: RepairCommand): Promise<RepairAnswer> {
    const { taskId, key } = command;
    const known = key === null ? null : await this.authority.store.findLedgerEntry(taskId, key.key);
    if (known !== null) return this.replay(command, known);
    for (let look = 0; look < MAX_LOOKS; look++) {
      const seen = await this.auditor.entry(taskId);
      if (seen === null) return refused(refuse('TASK_NOT_FOUND', 'there is no such task', { task_id: taskId }));
      const answer = seen.kind === 'task' ? await this.mend(command, seen) : await this.purged.repair(command, seen);
      if (answer !== 'lost') return answer;
    }
    return refused(refuse('CONTENTION', 'the task kept changing; retry with the same key', { task_id: taskId }));
  }

  private async mend(command: RepairCommand, task: AuditedTask): Promise<RepairAnswer | 'lost'> {
    const seen = await this.auditor.task(task);
    const findings = seen.findings.filter(({ invariant: name }) => isToBeMended(name));
    const plan = await this.planOf(command, task, { ...seen, findings });
    if (plan.kind === 'impossible') return refused(useless(command, plan));
    if (command.key === null) return untouched(task, findings);
    if (plan.kind === 'sound') {
      const lease = task.record.ok ? await this.takeLostLease(task.record.value) : 'kept';
      return typeof lease === 'string' ? untouched(task, findings) : refused(lease);
    }
    return this.write(command, plan, { fingerprint: task.fingerprint, findings });
  }

  private async planOf(command: RepairCommand, task: AuditedTask, audit: TaskAudit): Promise<RepairPlan> {
    const { kind, eventNumber } = command;
    if (kind !== 'redact_payload') return planMending(kind, task, audit);
    const read = await this.authority.reads.get(command.taskId);
    const { record } = task;
    if (!read.ok || !record.ok || !isOfItsHistory(task, audit)) {
      return { kind: 'impossible', why: 'the task is damaged', mendedBy: ['rebuild_record'] };
    }
    const stored = await this.authority.store.readEvent(command.taskId, eventNumber);
    const payload = stored === null ? null : payloadOf(stored.event);
    if (payload === null) return { kind: 'impossible', why: 'that event has no payload of its own', mendedBy: [] };
    if (payload === REDACTED_JSON) return { kind: 'sound' };
    const data = { repair: kind, mended: [], redacted: eventNumber, accepted: null };
    return { kind: 'repair', before: record.value, base: record.value, data, links: [] };
  }

  private async write(
    command: RepairCommand,
    { before, base, data, links }: Planned,
    seen: { readonly fingerprint: string; readonly findings: readonly Finding[] },
  ): Promise<RepairAnswer | 'lost'> {
    const { taskId, key, cause } = command;
    if (key === null) throw new Error('a repair is written under its key');
    const answerJson = JSON.stringify({ findings: seen.findings });
    const ledger = { taskId, intentKey: key.key, contentHash: key.contentHash, answerJson };
    const rederive = data.repair !== 'redact_payload';
    const recount = rederive && seen.findings.some(({ invariant: name }) => name === 'permits.counts');
    const { fingerprint } = seen;
    const request: RepairRequest = { fingerprint, before, base, data, links, rederive, recount, cause, ledger };
    const outcome = await this.authority.upkeep.repair(request);
    switch (outcome.kind) {
      case 'lost':
        return 'lost';
      case 'refused':
        return outcome;
      case 'repeated':
        return this.replay(command, outcome.original);
      case 'applied':
        return this.done(taskId, { applied: true, replayed: false, findings: seen.findings });
    }
  }

  /**
   * Its session may have gone while nothing could be done to the task: nobody else looks for that any more. What keeps
   * it from being taken is the answer, so that the repair is asked for again.
   */
  private async takeLostLease({ admission, lease }: TaskRecord): Promise<'kept' | 'taken' | Refusal> {
    if (lease === null) return 'kept';
    const { sessionId } = lease;
    const session = await this.authority.store.loadSession(sessionId);
    if (session !== null && session.state !== 'gone') return 'kept';
    const cause = authorityCause('reaper', reason('run.requeued.lease_lost'), sessionId);
    const intent = { kind: 'session_lost', sessionId, cause } as const;
    const answer = await this.authority.apply({ taskId: admission.taskId, intent });
    return answer.kind === 'refused' ? answer.refusal : 'taken';
  }

  private replay({ taskId, key }: RepairCommand, entry: LedgerEntry): Promise<RepairAnswer> | RepairAnswer {
    if (entry.contentHash !== key?.contentHash) {
      return refused(
        refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for something else on this task', {
          idempotency_key: entry.intentKey,
          task_id: taskId,
        }),
      );
    }
    const { findings } = JSON.parse(entry.answerJson) as { readonly findings: readonly Finding[] };
    return this.done(taskId, { applied: true, replayed: true, findings });
  }

  private async done(taskId: string, outcome: Outcome): Promise<RepairAnswer> {
    const mended = await this.authority.reads.get(taskId);
    const lease = mended.ok ? await this.takeLostLease(mended.value) : 'kept';
    if (typeof lease !== 'string') return refused(lease);
    const told = mended.ok && (await this.catchUp(mended.value));
    const read = lease === 'taken' || told ? await this.authority.reads.get(taskId) : mended;
    return { kind: 'done', ...outcome, record: read.ok ? read.value : null, tombstone: null };
  }

  /** Told what it should have been told by others, where nobody is going to any more. Whether it was told anything. */
  private async catchUp({ admission }: TaskRecord): Promise<boolean> {
    const { taskId, policy } = admission;
    const { upkeep } = this.authority;
    const isChild = policy.parent?.attached === true;
    if (isChild) await upkeep.follow({ kind: 'child', taskId });
    if (policy.dependsOn.length === 0) return isChild;
    const seen = await this.auditor.entry(taskId);
    const family = seen?.kind === 'task' ? seen.family : null;
    for (const { upstreamId, upstream, generation, condition } of family?.edges ?? []) {
      if (upstreamId === null || upstream !== 'purged' || condition === null) continue;
      const found = await this.authority.reads.find(upstreamId);
      const tombstone = found.ok && found.value.kind === 'purged' ? found.value.tombstone : null;
      // Of a former generation the tombstone says nothing.
      if (tombstone?.generation !== generation) continue;
      const unsatisfied = (await this.authority.store.familyCounts([taskId]))[0]?.unsatisfied ?? 0;
      const { status: outcome, lastEvent: eventNumber } = tombstone;
      await upkeep.follow({
        kind: 'waiter',
        taskId,
        upstreamId,
        generation,
        outcome,
        eventNumber,
        condition,
        unsatisfied,
      });
    }
    return true;
  }
}

/** What passes by itself is left to that, unless it is known how to mend it. */
function isToBeMended(name: InvariantName): boolean {
  const { passes, mendedBy } = invariant(name);
  return passes !== true || mendedBy.length > 0;
}

/** The record is shown as it is stored, whatever this process remembers of it. */
function untouched({ record, seal, version, lastNumber }: AuditedTask, findings: readonly Finding[]): RepairAnswer {
  const trusted = record.ok && record.value.lastEvent === version && version === lastNumber && seal !== 'broken';
  return {
    kind: 'done',
    applied: false,
    replayed: false,
    findings,
    record: trusted ? record.value : null,
    tombstone: null,
  };
}

/** What stands behind the head of its row: of any other event nothing can be taken out. */
function payloadOf(event: TaskEvent): string | null {
  switch (event.type) {
    case 'task.output':
      return event.data.outputJson ?? event.data.binaryBase64;
    case 'reeve.task.checkpoint':
      return event.data.checkpointJson;
    case 'reeve.task.resumed':
    case 'reeve.task.generation_started':
      return event.data.inputJson;
    default:
      return 'resultJson' in event.data ? event.data.resultJson : null;
  }
}

function useless({ taskId, kind }: RepairCommand, plan: Extract<RepairPlan, { kind: 'impossible' }>): Refusal {
  return refuse('INVALID_TRANSITION', `this repair is of no use: ${plan.why}`, {
    task_id: taskId,
    repair: kind,
    mended_by: plan.mendedBy.join(','),
  });
}

function refused(refusal: Refusal): RepairAnswer {
  return { kind: 'refused', refusal };
}
