/**
 * Families and dependencies: counts, and what parents and children presume of each other (quality.md, invariants 12,
 * 13 and 17).
 */
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import type { AuditedFamily } from '../store/audit-rows.js';
import type { Findings } from './findings.js';

export function checkFamily(record: TaskRecord, family: AuditedFamily, findings: Findings): void {
  checkCounts(record, family, findings);
  const link = record.admission.policy.parent;
  if (link === null) return;
  const lives = link.attached && !isTerminal(record.status);
  if (family.livesAsChild !== lives) {
    const found = family.livesAsChild === null ? 'no row' : family.livesAsChild ? 'a live one' : 'one that is over';
    findings.add('family.child', `${found} under its parent, and it is ${record.status}`);
  }
  if (lives) checkParent(record, link.generationId, family, findings);
}

function checkCounts(record: TaskRecord, { counts, found }: AuditedFamily, findings: Findings): void {
  const differs = (what: string, counted: number, there: number): void => {
    if (counted !== there) findings.add('family.counts', `${counted} ${what} counted, ${there} there`);
  };
  differs('live children', counts.liveChildren, found.liveChildren);
  differs('open dependencies', counts.unsatisfied, found.unsatisfied);
  if (record.status === 'completed' && found.liveChildren > 0) {
    findings.add('family.completed', `completed with ${found.liveChildren} live children`);
  }
  if (record.openDependencies !== found.unsatisfied > 0) {
    const marked = record.openDependencies ? 'marked to wait' : 'not marked to wait';
    findings.add('family.dependencies', `${marked}, with ${found.unsatisfied} open edges`);
  }
}

/** A parent that can't be read is told of under its own name. */
function checkParent(child: TaskRecord, generationId: string, family: AuditedFamily, findings: Findings): void {
  const { parent, parentPropagates } = family;
  if (parent === null || parentPropagates) return;
  if (parent.generationId !== generationId) {
    findings.add('family.parent', 'its parent is in another generation');
  } else if (isTerminal(parent.status)) {
    findings.add('family.parent', `its parent is ${parent.status}`);
  } else if (parent.cancellation !== null && child.cancellation === null) {
    findings.add('family.parent', 'its parent is asked to end, and it is not');
  }
}
