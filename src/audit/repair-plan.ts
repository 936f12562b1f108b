/**
 * Deciding on a repair: from what an audit saw of a task to the record that it goes on from, or why this kind of repair
 * is of no use to it. Pure; what is decided here is written only if the task still is as it was seen.
 */
import type { RepairData, RepairKind, TaskState } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { AuditedTask } from '../store/audit-rows.js';
import type { LinkWrite } from '../store/family-rows.js';
import { type Finding, isOfHistory } from './findings.js';
import { invariant } from './invariants.js';
import { mendedNews } from './propagations.js';
import type { TaskAudit } from './task-audit.js';

export type RepairPlan =
  /** There is nothing to mend. */
  | { readonly kind: 'sound' }
  /** `mendedBy`: the kinds of repair that could mend what is wrong; empty where none can. */
  | { readonly kind: 'impossible'; readonly why: string; readonly mendedBy: readonly RepairKind[] }
  | {
      readonly kind: 'repair';
      readonly before: TaskRecord | null;
      readonly base: TaskRecord;
      readonly data: RepairData;
      /** What is written beside the record: who is still to be told. */
      readonly links: readonly LinkWrite[];
    };

/** The repairs of what an audit finds; a payload is taken out of a task that is sound. */
export type MendingKind = Exclude<RepairKind, 'redact_payload'>;

const MENDING: readonly MendingKind[] = ['rebuild_record', 'accept_record', 'reindex'];

export function planMending(kind: MendingKind, task: AuditedTask, audit: TaskAudit): RepairPlan {
  if (!task.admission.ok) {
    return { kind: 'impossible', why: 'the admission cannot be read, and nothing stands for it', mendedBy: [] };
  }
  if (audit.findings.length === 0) return { kind: 'sound' };
  const mended = mendable(kind, audit.findings);
  const base = mended.length === 0 ? 'it does not mend what is wrong' : baseOf(kind, task, audit);
  if (typeof base === 'string') {
    const others = MENDING.filter((other) => mendable(other, audit.findings).length > 0);
    return {
      kind: 'impossible',
      why: base,
      mendedBy: others.filter((other) => typeof baseOf(other, task, audit) !== 'string'),
    };
  }
  const accepted = kind === 'accept_record' ? stateOf(base) : null;
  const data = { repair: kind, mended: namesOf(mended), redacted: null, accepted };
  const links = mendedNews(base, task.family, audit.ends);
  return { kind: 'repair', before: kind === 'reindex' ? base : null, base, data, links };
}

/** The record that the task goes on from, or why there is none. */
function baseOf(kind: MendingKind, task: AuditedTask, audit: TaskAudit): TaskRecord | string {
  const { record, lastNumber } = task;
  switch (kind) {
    case 'rebuild_record': {
      const { folded, findings } = audit;
      const whole = folded?.lastEvent === lastNumber && !findings.some(({ invariant: name }) => isOfHistory(name));
      if (folded === null || !whole) return 'the history is not whole, so no record can be made from it';
      return folded;
    }
    case 'accept_record':
      return record.ok ? acceptable(record.value, lastNumber ?? 0, audit) : 'the record cannot be read';
    case 'reindex':
      if (!record.ok) return 'the record cannot be read';
      return isOfItsHistory(task, audit) ? record.value : 'the record is not that of the history';
  }
}

/** Whether the record may be written again as it stands: what a repair writes counts as sound from then on. */
export function isOfItsHistory(
  { record, seal, lastNumber }: AuditedTask,
  { folded, findings }: Pick<TaskAudit, 'folded' | 'findings'>,
): boolean {
  if (!record.ok || record.value.lastEvent !== lastNumber || seal === 'broken') return false;
  // Where no history can tell, a seal does; one from before there were seals is not known to be what was written.
  if (folded === null) return seal === 'holds';
  return !findings.some(({ invariant: name }) => name === 'history.fold');
}

/** Numbers that the history has given are not given again, however much of it is lost: others may hold them. */
function acceptable(record: TaskRecord, lastNumber: number, { given }: TaskAudit): TaskRecord | string {
  if (record.lease !== null && record.lease.epoch < given.epoch) {
    return 'the record holds a lease that its history has superseded';
  }
  const unread = (event: number | null): number | null =>
    event === null || given.unreadable.some(({ from, to }) => from < event && event <= to) ? null : event;
  return {
    ...record,
    lastEvent: Math.max(record.lastEvent, lastNumber),
    revision: Math.max(record.revision, given.revision),
    epoch: Math.max(record.epoch, given.epoch),
    resultEvent: unread(record.resultEvent),
    checkpointEvent: unread(record.checkpointEvent),
    inputEvent: unread(record.inputEvent),
  };
}

function stateOf({ admission: _kept, ...state }: TaskRecord): TaskState {
  return state;
}

function mendable(kind: MendingKind, findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ invariant: name }) => invariant(name).mendedBy.includes(kind));
}

function namesOf(findings: readonly Finding[]): readonly string[] {
  return [...new Set(findings.map(({ invariant: name }) => name))];
}
