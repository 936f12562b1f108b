/**
 * The guards of families, one truth for all adapters: whether what a plan presumes of edges and counts holds in the
 * transaction that writes it. Only a count's being zero is ever presumed, so that additions do not collide.
 */
import type { FamilyCounts, LinkWrite } from './family-rows.js';

/** The adapter's tables, as the plans before this one left them. */
export interface FamilyView {
  /** Null: no such child of that parent. */
  childLives(parentId: string, childId: string): boolean | null;
  hasEdge(upstreamId: string, generation: number, waiterId: string): boolean;
  counts(taskId: string): FamilyCounts;
  /** The event number of the fact that waits to be told; null when there is none. */
  propagationOf(taskId: string, generation: number): number | null;
  /** Whether a task waits for any generation of this one. */
  isAwaited(taskId: string): boolean;
  /** Whether a fact of any generation is still to be told. */
  hasNews(taskId: string): boolean;
}

/** The task about which the plan is mistaken, or null when all holds. */
export function brokenLink(links: readonly LinkWrite[], view: FamilyView): string | null {
  for (const link of links) {
    const broken = brokenBy(link, links, view);
    if (broken !== null) return broken;
  }
  return null;
}

/** Whether a task that is over is still needed: by what lives under it, waits for it, or is to hear of it. */
export function isNeeded(taskId: string, view: FamilyView): boolean {
  const { liveChildren, unsatisfied } = view.counts(taskId);
  return liveChildren !== 0 || unsatisfied !== 0 || view.isAwaited(taskId) || view.hasNews(taskId);
}

function brokenBy(link: LinkWrite, links: readonly LinkWrite[], view: FamilyView): string | null {
  switch (link.kind) {
    case 'child_admitted':
    case 'edge_opened':
    case 'edges_dropped':
    case 'propagation':
      return null;
    case 'child_revived':
      return view.childLives(link.parentId, link.childId) === false ? null : link.childId;
    case 'child_ended':
      return view.childLives(link.parentId, link.childId) === true ? null : link.childId;
    case 'no_live_children':
      return view.counts(link.parentId).liveChildren === 0 ? null : link.parentId;
    case 'edge_closed':
      return view.hasEdge(link.upstreamId, link.generation, link.waiterId) ? null : link.waiterId;
    case 'edges_left': {
      const closed = links.filter((other) => other.kind === 'edge_closed' && other.waiterId === link.waiterId).length;
      return view.counts(link.waiterId).unsatisfied > closed === link.any ? null : link.waiterId;
    }
    case 'propagated': {
      const { taskId, generation, eventNumber } = link.row;
      return view.propagationOf(taskId, generation) === eventNumber ? null : taskId;
    }
  }
}
