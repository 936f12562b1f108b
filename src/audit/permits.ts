/**
 * The audit of permits: each task's standing in the lines of those that it needs, and of each permit how many run with it
 * and stand in its lines, as counted against as there are (quality.md, invariant 11). Which permits the deployment wants
 * is not asked: what it has come to want since is brought in line as tasks go on. Pure.
 */
import { type PermitSubject, permitStance, subjectOf } from '../kernel/permits.js';
import { readyOrder } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import type { AuditedPermit, AuditedPermitRow } from '../store/audit-rows.js';
import { type Finding, type Findings, findingBeside } from './findings.js';

export function checkPermitPlaces(record: TaskRecord, rows: readonly AuditedPermitRow[], findings: Findings): void {
  const stray = rows.filter(({ name }) => name === null || !mayNeed(record, subjectOf(name)));
  if (stray.length > 0) findings.add('permits.place', `${stray.length} places for what it does not need`);
  const elsewhere = rows.filter(({ isOfRoute }) => !isOfRoute);
  if (elsewhere.length > 0) findings.add('permits.place', `${elsewhere.length} places in lines of another route`);
  const stance = permitStance(record);
  const states = rows.map(({ state }) => state);
  switch (stance) {
    case 'none':
      if (rows.length > stray.length) findings.add('permits.place', `${record.status} with ${rows.length} places`);
      return;
    case 'running':
      if (states.some((state) => state !== 'running')) findings.add('permits.place', 'it runs without all its permits');
      break;
    case 'queued':
      if (!isALine(states)) {
        const told = states.map((state) => state ?? 'nothing that there is');
        findings.add('permits.place', `it queues as ${told.join(', ')}`);
      }
      checkOrder(record, rows, findings);
      break;
  }
  const { concurrencyKey } = record.admission.policy;
  const hasKey = rows.some(({ name }) => name !== null && subjectOf(name).kind === 'key');
  if (concurrencyKey !== null && !hasKey) findings.add('permits.place', `${record.status} without a place for its key`);
}

function checkOrder(record: TaskRecord, rows: readonly AuditedPermitRow[], findings: Findings): void {
  const expected = readyOrder(record);
  const other = rows.find((row) => row.readyOrder !== expected);
  if (other === undefined) return;
  findings.add('permits.place', `its place in line is ${other.readyOrder}, ${expected ?? 'none'} was expected`);
}

/** Where the task is to stand in the ready index, with these places. */
export function readyOrderWith(record: TaskRecord, rows: readonly AuditedPermitRow[]): number | null {
  return rows.every(({ state }) => state === 'passed') ? readyOrder(record) : null;
}

/** Past some, in the line of the next one, and its turn for others has not come. */
function isALine(states: readonly AuditedPermitRow['state'][]): boolean {
  const first = states.findIndex((state) => state !== 'passed');
  const [next, ...later] = first < 0 ? [] : states.slice(first);
  return (next === undefined || next === 'waiting' || next === 'aside') && later.every((state) => state === 'to_come');
}

function mayNeed({ admission }: TaskRecord, subject: PermitSubject): boolean {
  const { namespace, policy, application } = admission;
  if (subject.kind === 'capability') return application.requiredCapabilities.includes(subject.label);
  return subject.namespace === namespace && subject.key === policy.concurrencyKey;
}

/** Told of a task that stands in its lines, so that whoever is to mend it knows one by which it can be. */
export function auditPermits(permits: readonly AuditedPermit[]): readonly Finding[] {
  return permits.flatMap((permit) => {
    const { running, found, linesAgree, settled } = permit;
    const findings: Finding[] = [];
    if (running !== found)
      findings.push(about(permit, 'permits.counts', `${running} are counted, ${found} run with it`));
    if (!linesAgree) findings.push(about(permit, 'permits.counts', 'its lines are counted otherwise than they stand'));
    if (running === found && linesAgree && !settled) {
      findings.push(
        about(permit, 'permits.settled', 'somebody waits where there is room, or passed where there is none'),
      );
    }
    return findings;
  });
}

function about(
  { name, taskId }: AuditedPermit,
  invariant: 'permits.counts' | 'permits.settled',
  what: string,
): Finding {
  const subject = subjectOf(name);
  const permit = subject.kind === 'key' ? `a key of namespace ${subject.namespace}` : `capability ${subject.label}`;
  const finding =
    taskId === null
      ? findingBeside(invariant, permit, `${what}; no task stands in its lines`)
      : { taskId, invariant, detail: `the permit of ${permit}: ${what}`, eventNumber: 0 };
  // Of a busy one each look meets another task.
  return { ...finding, about: name };
}
