/**
 * Families and dependencies in the memory store: edges, counts and what is still to be told, as maps.
 */
import type { DependencyCondition } from '../../kernel/admission/family-policy.js';
import type { FamilyView } from '../family-guards.js';
import { type FamilyCounts, type LinkWrite, NO_COUNTS, type Propagation } from '../family-rows.js';
import { deepFreeze } from '../../lib/deep-freeze.js';

export class MemoryFamily implements FamilyView {
  /** By parent: each child, and whether it is attached and lives. */
  readonly children = new Map<string, Map<string, boolean>>();
  /** By upstream generation: who waits for it, and for what. */
  private readonly edges = new Map<string, Map<string, DependencyCondition>>();
  /** By waiter: the upstream generations it waits for. */
  private readonly waits = new Map<string, Set<string>>();
  private readonly counted = new Map<string, FamilyCounts>();
  readonly propagations = new Map<string, Propagation>();
  /** By child. Outlives both, so that what is below a purged task is still below its parent. */
  readonly parents = new Map<string, string>();

  childLives(parentId: string, childId: string): boolean | null {
    return this.children.get(parentId)?.get(childId) ?? null;
  }

  hasEdge(upstreamId: string, generation: number, waiterId: string): boolean {
    return this.edges.get(generationKey(upstreamId, generation))?.has(waiterId) ?? false;
  }

  counts(taskId: string): FamilyCounts {
    return this.counted.get(taskId) ?? NO_COUNTS;
  }

  /** What `counts` counts, counted anew. */
  found(taskId: string): FamilyCounts {
    const lives = [...(this.children.get(taskId)?.values() ?? [])].filter((live) => live).length;
    return { liveChildren: lives, unsatisfied: this.waits.get(taskId)?.size ?? 0 };
  }

  recount(taskId: string): void {
    this.counted.set(taskId, this.found(taskId));
  }

  rederiveChild(parentId: string, childId: string, live: boolean): void {
    putInto(this.children, parentId).set(childId, live);
    this.recount(parentId);
  }

  propagationsOf(taskId: string): readonly Propagation[] {
    const rows = [...this.propagations.values()].filter((row) => row.taskId === taskId);
    return rows.sort((left, right) => left.generation - right.generation);
  }

  liveChildrenOf(parentId: string): readonly string[] {
    return [...(this.children.get(parentId) ?? [])].flatMap(([childId, live]) => (live ? [childId] : []));
  }

  awaitedGenerations(taskId: string): readonly number[] {
    const keys = [...this.edges.keys()].filter((key) => isGenerationOf(key, taskId));
    return keys.map(generationOf).sort((left, right) => left - right);
  }

  edgesOf(waiterId: string): readonly {
    readonly upstreamId: string;
    readonly generation: number;
    readonly condition: DependencyCondition | null;
  }[] {
    return [...(this.waits.get(waiterId) ?? [])].map((key) => ({
      upstreamId: key.slice(0, key.lastIndexOf('~')),
      generation: generationOf(key),
      condition: this.edges.get(key)?.get(waiterId) ?? null,
    }));
  }

  propagationOf(taskId: string, generation: number): number | null {
    return this.propagations.get(generationKey(taskId, generation))?.eventNumber ?? null;
  }

  isAwaited(taskId: string): boolean {
    return [...this.edges.keys()].some((key) => isGenerationOf(key, taskId));
  }

  hasNews(taskId: string): boolean {
    return [...this.propagations.keys()].some((key) => isGenerationOf(key, taskId));
  }

  /** Nothing lives under it, waits for it or is to hear of it any more. */
  forget(taskId: string): void {
    this.counted.delete(taskId);
    const parent = this.parents.get(taskId);
    if (parent !== undefined) this.children.get(parent)?.delete(taskId);
  }

  waitersOf(taskId: string, generation: number): ReadonlyMap<string, DependencyCondition> {
    return this.edges.get(generationKey(taskId, generation)) ?? new Map<string, DependencyCondition>();
  }

  write(link: LinkWrite): void {
    switch (link.kind) {
      case 'child_admitted':
        return this.putChild(link.parentId, link.childId, link.live, link.live ? 1 : 0);
      case 'child_revived':
        return this.putChild(link.parentId, link.childId, true, 1);
      case 'child_ended':
        return this.putChild(link.parentId, link.childId, false, -1);
      case 'edge_opened':
        putInto(this.edges, generationKey(link.upstreamId, link.generation)).set(link.waiterId, link.condition);
        this.waitsOf(link.waiterId).add(generationKey(link.upstreamId, link.generation));
        return this.add(link.waiterId, 0, 1);
      case 'edge_closed':
        return this.close(generationKey(link.upstreamId, link.generation), link.waiterId);
      case 'edges_dropped':
        for (const upstream of [...(this.waits.get(link.waiterId) ?? [])]) this.close(upstream, link.waiterId);
        return;
      case 'propagation':
        this.propagations.set(generationKey(link.row.taskId, link.row.generation), deepFreeze(link.row));
        return;
      case 'propagated':
        this.propagations.delete(generationKey(link.row.taskId, link.row.generation));
        return;
      case 'no_live_children':
      case 'edges_left':
        return;
    }
  }

  private putChild(parentId: string, childId: string, live: boolean, change: number): void {
    putInto(this.children, parentId).set(childId, live);
    this.parents.set(childId, parentId);
    this.add(parentId, change, 0);
  }

  private close(upstream: string, waiterId: string): void {
    this.edges.get(upstream)?.delete(waiterId);
    if (this.edges.get(upstream)?.size === 0) this.edges.delete(upstream);
    const waits = this.waitsOf(waiterId);
    waits.delete(upstream);
    if (waits.size === 0) this.waits.delete(waiterId);
    this.add(waiterId, 0, -1);
  }

  private waitsOf(waiterId: string): Set<string> {
    const known = this.waits.get(waiterId) ?? new Set<string>();
    this.waits.set(waiterId, known);
    return known;
  }

  private add(taskId: string, liveChildren: number, unsatisfied: number): void {
    const before = this.counts(taskId);
    this.counted.set(taskId, {
      liveChildren: before.liveChildren + liveChildren,
      unsatisfied: before.unsatisfied + unsatisfied,
    });
  }
}

function putInto<Value>(maps: Map<string, Map<string, Value>>, key: string): Map<string, Value> {
  const known = maps.get(key) ?? new Map<string, Value>();
  maps.set(key, known);
  return known;
}

function isGenerationOf(key: string, taskId: string): boolean {
  return key.slice(0, key.lastIndexOf('~')) === taskId;
}

function generationKey(taskId: string, generation: number): string {
  return `${taskId}~${String(generation)}`;
}

function generationOf(key: string): number {
  return Number(key.slice(key.lastIndexOf('~') + 1));
}
