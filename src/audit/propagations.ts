/**
 * What children and waiters of a task have still to be told of it, against what is there to tell them (quality.md,
 * invariants 12 and 17). A fact and its row are written in one transaction, and the row goes when all were told: so in
 * one snapshot whoever was not told yet has a row, and without it would never be told.
 */
import type { TaskRecord } from '../kernel/record.js';
import { type TerminalStatus, isTerminal } from '../kernel/status.js';
import type { AuditedFamily, AuditedPropagation } from '../store/audit-rows.js';
import type { FollowedOutcome, LinkWrite, Propagation } from '../store/family-rows.js';
import type { Findings } from './findings.js';

/** How a generation ended, as the history tells it. */
export interface End {
  readonly status: TerminalStatus;
  readonly eventNumber: number;
}

export type Ends = ReadonlyMap<number, End>;

export interface News {
  /** Followers wait to be told this, and there is no row. */
  readonly missing: readonly Propagation[];
  /** Generations that somebody waits for and that are over; how they ended is not known. */
  readonly unknown: readonly number[];
  /** Rows that say what is not so. */
  readonly wrong: readonly AuditedPropagation[];
}

/** The former generations of which it has to be known how they ended. */
export function generationsInQuestion({ awaited, propagations }: AuditedFamily): ReadonlySet<number> {
  return new Set([...awaited, ...propagations.map(({ generation }) => generation)]);
}

export function newsOf(record: TaskRecord, family: AuditedFamily, ends: Ends): News {
  const { taskId } = record.admission;
  const wrong = family.propagations.filter((row) => !isSo(row, record, ends));
  const right = family.propagations.filter((row) => !wrong.includes(row));
  const missing: Propagation[] = [];
  const unknown: number[] = [];
  const need = (generation: number, outcome: FollowedOutcome, eventNumber: number): void => {
    const there = right.some((row) => row.generation === generation && row.outcome === outcome);
    if (!there) missing.push({ taskId, generation, outcome, eventNumber });
  };
  const { generation, status, lastEvent } = record;
  for (const former of family.awaited.filter((awaited) => awaited < generation)) {
    const end = ends.get(former);
    if (end === undefined) unknown.push(former);
    else need(former, end.status, end.eventNumber);
  }
  if (isTerminal(status)) {
    const bereaved = status !== 'completed' && family.found.liveChildren > 0;
    if (bereaved || family.awaited.includes(generation)) need(generation, status, lastEvent);
  } else if (family.hasUnaskedChild) {
    need(generation, 'cancel_requested', lastEvent);
  }
  return { missing, unknown, wrong };
}

/** Whether this may still be on its way to somebody. */
function isSo({ generation, outcome, eventNumber }: AuditedPropagation, record: TaskRecord, ends: Ends): boolean {
  if (outcome === null || eventNumber < 1 || eventNumber > record.lastEvent) return false;
  if (generation > record.generation) return false;
  const end = generation === record.generation ? endOf(record) : ends.get(generation)?.status;
  if (outcome !== 'cancel_requested') return end === undefined || outcome === end;
  return generation < record.generation || record.cancellation !== null;
}

function endOf({ status }: TaskRecord): TerminalStatus | null {
  return isTerminal(status) ? status : null;
}

export function checkNews(record: TaskRecord, family: AuditedFamily, ends: Ends, findings: Findings): void {
  const { missing, unknown, wrong } = newsOf(record, family, ends);
  for (const { generation, outcome } of missing) {
    findings.add('family.news', `nobody tells those who follow generation ${generation} that it is ${outcome}`);
  }
  for (const generation of unknown) {
    findings.add('family.news', `somebody waits for generation ${generation}, and how that ended is not known`);
  }
  for (const { generation, outcome } of wrong) {
    findings.add('family.news', `told of generation ${generation}: ${outcome ?? 'nothing that there is'}`);
  }
}

/** What mends it: rows that are put, and rows that go. */
export function mendedNews(record: TaskRecord, family: AuditedFamily, ends: Ends): readonly LinkWrite[] {
  const { missing, wrong } = newsOf(record, family, ends);
  const { taskId } = record.admission;
  const replaced = new Set(missing.map(({ generation }) => generation));
  const gone = wrong.filter(({ generation }) => !replaced.has(generation));
  return [
    ...missing.map((row): LinkWrite => ({ kind: 'propagation', row })),
    // By generation and number alone; what it said need not be anything that there is.
    ...gone.map(({ generation, eventNumber }): LinkWrite => ({
      kind: 'propagated',
      row: { taskId, generation, eventNumber, outcome: 'cancel_requested' },
    })),
  ];
}
