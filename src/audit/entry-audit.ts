/**
 * The audit of whatever stands at one place in the order of admission: a task, what is left of one, or neither.
 */
import type { Audited } from '../store/audit-rows.js';
import type { Finding } from './findings.js';
import type { AuditMoment } from './standing.js';
import { type ReadOn, auditTask } from './task-audit.js';
import { auditRemains, auditTombstone } from './tombstones.js';

export interface EntryAudit {
  readonly findings: readonly Finding[];
  readonly events: number;
  readonly links: number;
  /** Of the last event that could be read; 0 without any. */
  readonly lastSequence: number;
}

export async function auditEntry(entry: Audited, readOn: ReadOn, moment: AuditMoment): Promise<EntryAudit> {
  switch (entry.kind) {
    case 'task':
      return auditTask(entry, readOn, moment);
    case 'purged':
      return { findings: auditTombstone(entry), events: 0, links: 0, lastSequence: 0 };
    case 'remains':
      return { findings: auditRemains(entry), events: 0, links: 0, lastSequence: 0 };
  }
}
