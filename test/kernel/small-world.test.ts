// Breadth first through a small world over the real kernel: every move from every state that can be reached, each
// step checked against the same invariants as the random histories.

import { describe, expect, it } from 'vitest';
import { EDGES } from '../../src/kernel/edges.js';
import { follow, firstNode, keyOf, movesFrom, type Node } from './small-world.js';
import { T0, TaskWorld } from './task-world.js';

interface Explored {
  readonly states: number;
  readonly moves: number;
  readonly edges: ReadonlySet<string>;
}

function explore(first: Node): Explored {
  const seen = new Set([keyOf(first)]);
  const edges = new Set<string>();
  let frontier = [first];
  let moves = 0;
  while (frontier.length > 0) {
    const next: Node[] = [];
    for (const node of frontier) {
      for (const move of movesFrom(node)) {
        moves += 1;
        const reached = follow(node, move);
        if (reached.record.status !== node.record.status) edges.add(`${node.record.status}>${reached.record.status}`);
        const key = keyOf(reached);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push(reached);
      }
    }
    frontier = next;
  }
  return { states: seen.size, moves, edges };
}

describe.each(['COOPERATIVE', 'FENCED'] as const)('the small world under %s', (cancellationPolicy) => {
  it('keeps every invariant wherever it leads', () => {
    const first = firstNode(
      cancellationPolicy,
      () =>
        TaskWorld.admit({
          cancellationPolicy,
          timeoutMs: 5_000_000,
          startByMs: 4_000_000,
          attemptTimeoutMs: 60_000,
          progressTimeoutMs: 50_000,
          notBeforeAtMs: T0 + 1_000,
          retry: { maxAttempts: 2, initialMs: 1_000 },
        }).record,
    );
    const { states, edges } = explore(first);
    expect(states).toBeGreaterThan(1_000);
    // Every edge is taken, but for the two that need dependencies.
    const expected = EDGES.filter(
      ({ from, to }) => from !== null && from !== 'waiting_dependency' && to !== 'waiting_dependency',
    ).map(({ from, to }) => `${from ?? ''}>${to}`);
    expect(expected.filter((edge) => !edges.has(edge))).toEqual([]);
  }, 60_000);
});
