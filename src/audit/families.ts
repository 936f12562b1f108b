/**
 * Families and dependencies: counts, edges, and what parents and children presume of each other (quality.md,
 * invariants 12, 13 and 17).
 */
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import type { AuditedFamily, PlaceAsChild } from '../store/audit-rows.js';
import type { Findings } from './findings.js';

export function checkFamily(record: TaskRecord, family: AuditedFamily, findings: Findings): void {
  checkCounts(record, family, findings);
  checkEdges(record, family, findings);
  const link = record.admission.policy.parent;
  const lives = link?.attached === true && !isTerminal(record.status);
  checkPlace(record, family.asChild, link === null ? null : lives, findings);
  if (link !== null && lives) checkParent(record, link.generationId, family, findings);
}

/** `lives`: whether it should stand there as live; null: it has no parent. */
function checkPlace(
  { status }: TaskRecord,
  places: readonly PlaceAsChild[],
  lives: boolean | null,
  findings: Findings,
): void {
  const [place, another] = places;
  const add = (detail: string): void => findings.add('family.child', detail);
  if (lives === null) {
    if (place !== undefined) add('a place under a parent, and it has none');
  } else if (place === undefined) add(`no row under its parent, and it is ${status}`);
  else if (another !== undefined || !place.isNamed) add('a place under another parent than its own');
  else if (place.live !== lives) add(`${place.live ? 'a live one' : 'one that is over'}, and it is ${status}`);
}

function checkEdges(record: TaskRecord, { edges, awaited }: AuditedFamily, findings: Findings): void {
  const { policy } = record.admission;
  for (const { upstreamId, upstream, generation, condition } of edges) {
    const named = policy.dependsOn.find(({ taskId }) => taskId === upstreamId);
    if (upstream === 'nowhere') findings.add('family.edges', 'it waits for what is neither a task nor a purged one');
    else if (named?.condition !== condition)
      findings.add('family.edges', 'it waits for what its admission does not name');
    else if (upstream === 'purged')
      findings.add('family.purged', `it waits for generation ${generation} of ${upstreamId ?? ''}`);
  }
  for (const generation of awaited) {
    if (generation <= record.generation && generation > 0) continue;
    findings.add('family.edges', `generation ${generation} is waited for in generation ${record.generation}`);
  }
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
