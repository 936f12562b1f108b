/**
 * The audit of one task: its rows, its history from beginning to end, its record against both. Holds no more of a
 * history than one stretch of it, however long it is. Pure but for reading on.
 */
import type { TaskRecord } from '../kernel/record.js';
import type { AuditedCommit, AuditedTask, HistoryStretch } from '../store/audit-rows.js';
import type { EventCheck } from './event-check.js';
import { checkFamily } from './families.js';
import { type Finding, Findings } from './findings.js';
import { checkPermitPlaces } from './permits.js';
import { Folding, differingFields } from './folding.js';
import { Lifecycle } from './lifecycle.js';
import { Numbers } from './numbers.js';
import { type Ends, checkNews, generationsInQuestion } from './propagations.js';
import { type AuditMoment, checkIndexes, checkLease, checkOverdue, checkTimes } from './standing.js';

/** Reads on in the history of one task, after this event number and up to that one. */
export type ReadOn = (order: number, afterNumber: number, throughNumber: number) => Promise<HistoryStretch>;

export interface TaskAudit {
  readonly findings: readonly Finding[];
  readonly events: number;
  readonly links: number;
  /** What the history comes to; null when that cannot be told. */
  readonly folded: TaskRecord | null;
  readonly given: Given;
  /** How those of its generations ended that somebody may still have to be told of. */
  readonly ends: Ends;
  /** The sequence of the last event that could be read; 0 without any. */
  readonly lastSequence: number;
}

/** What the history has given out, whatever of it can be trusted. */
export interface Given {
  readonly revision: number;
  readonly epoch: number;
  /** Events that can't be read: those above `from`, through `to`. */
  readonly unreadable: readonly { readonly from: number; readonly to: number }[];
}

const UNREAD: Omit<TaskAudit, 'findings'> = {
  events: 0,
  links: 0,
  folded: null,
  given: { revision: 0, epoch: 0, unreadable: [] },
  ends: new Map(),
  lastSequence: 0,
};

export async function auditTask(task: AuditedTask, readOn: ReadOn, moment: AuditMoment): Promise<TaskAudit> {
  const findings = new Findings(task.taskId);
  const { admission } = task;
  if (task.hasTombstone) findings.add('store.rows', 'a tombstone stands in its place');
  if (task.awaitsSweep) findings.add('store.sweep', 'what is kept of it is to be swept');
  if (!admission.ok) {
    findings.add('store.admission', admission.detail);
    return { ...UNREAD, findings: findings.list() };
  }
  if (task.keyOrder !== task.order) {
    findings.add('store.key', task.keyOrder === null ? 'the key leads nowhere' : 'the key leads to another task');
  }
  if (!task.argsHold) findings.add('admission.hash', 'the args hash to something else');
  const history = new HistoryAudit(findings, new Folding(admission.value), generationsInQuestion(task.family));
  await history.read(task, readOn);
  checkRecord(task, history, findings, moment);
  const { events, links, folding, given, lastSequence, lifecycle } = history;
  const { ends } = lifecycle;
  return { findings: findings.list(), events, links, folded: folding.folded, given, ends, lastSequence };
}

function checkRecord(task: AuditedTask, history: HistoryAudit, findings: Findings, moment: AuditMoment): void {
  const { record, version, lastNumber } = task;
  if (!record.ok) {
    findings.add('store.record', record.detail);
    return;
  }
  const { lastEvent, attempt } = record.value;
  if (lastEvent !== version || version !== lastNumber) {
    const detail = `row ${version}, record ${lastEvent}, history ${lastNumber ?? 'none'}`;
    findings.add('store.version', detail);
  }
  if (task.seal === 'broken') findings.add('store.seal', 'the record is not the one that was written');
  const { folded, problem } = history.folding;
  if (folded === null) {
    findings.add('history.fold', problem ?? 'there is no history');
  } else {
    const fields = differingFields(folded, record.value);
    if (fields.length > 0) findings.add('history.fold', `differs in ${fields.join(', ')}`);
  }
  const counted = history.lifecycle.countedAttempts;
  if (counted !== null && counted !== attempt) {
    findings.add('record.attempts', `attempt ${attempt}, and ${counted} claims count`);
  }
  checkLease(record.value, task.session, findings);
  checkTimes(record.value, findings);
  checkIndexes(task, record.value, findings);
  checkPermitPlaces(record.value, task.permits, findings);
  checkFamily(record.value, task.family, findings);
  checkNews(record.value, task.family, history.lifecycle.ends, findings);
  checkOverdue(record.value, task.session, moment, findings);
}

class HistoryAudit {
  readonly lifecycle: Lifecycle;
  events = 0;
  links = 0;
  readonly given = { revision: 0, epoch: 0, unreadable: [] as { from: number; to: number }[] };
  lastSequence = 0;
  private lastNumber = 0;
  private readonly checks: readonly EventCheck[];

  constructor(
    private readonly findings: Findings,
    readonly folding: Folding,
    inQuestion: ReadonlySet<number>,
  ) {
    this.lifecycle = new Lifecycle(findings, inQuestion);
    this.checks = [new Numbers(findings), this.lifecycle, folding];
  }

  async read({ order, lastNumber, history }: AuditedTask, readOn: ReadOn): Promise<void> {
    for (let stretch = history; ;) {
      for (const commit of stretch.commits) this.see(commit);
      const last = stretch.commits[stretch.commits.length - 1];
      if (!stretch.more || last === undefined || lastNumber === null) return;
      stretch = await readOn(order, last.lastNumber, lastNumber);
    }
  }

  private see({ firstSequence, lastNumber, events, link, chain, nextSequence }: AuditedCommit): void {
    const before = this.lastNumber;
    this.lastNumber = lastNumber;
    if (link !== null) this.links += 1;
    if (chain === 'broken') {
      const detail = link === null ? 'the link is missing' : 'the link does not follow from what is there';
      this.findings.add('chain.link', detail, lastNumber);
    }
    if (!events.ok) {
      this.findings.add('history.readable', events.detail, lastNumber);
      this.given.unreadable.push({ from: before, to: lastNumber });
      for (const check of this.checks) check.lost(lastNumber);
      return;
    }
    this.lastSequence = firstSequence + events.value.length - 1;
    if (nextSequence !== null && nextSequence <= this.lastSequence) {
      this.findings.add('history.sequences', `another commit begins at ${nextSequence}, within this one`, lastNumber);
    }
    for (const [index, event] of events.value.entries()) {
      const sequence = firstSequence + index;
      this.events += 1;
      this.given.revision = Math.max(this.given.revision, event.revision ?? 0);
      this.given.epoch = Math.max(this.given.epoch, event.epoch ?? 0);
      const accepted = event.type === 'reeve.task.repaired' && event.data.accepted !== null;
      for (const check of this.checks) if (!accepted) check.see(event, sequence);
      if (accepted) this.acceptFrom(event, sequence);
    }
  }

  private acceptFrom(event: Parameters<EventCheck['see']>[0], sequence: number): void {
    this.findings.forgetHistory();
    this.folding.begin(event);
    const { folded } = this.folding;
    if (folded !== null) for (const check of this.checks) check.restart(event, sequence, folded);
  }
}
