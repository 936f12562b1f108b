// The vocabulary and the edges, against lifecycle.md sections 2 and 3 written down once more as data.

import { describe, expect, it } from 'vitest';
import { EDGES, isDeclaredEdge, mayTake, type EdgeIntent } from '../../src/kernel/edges.js';
import { TASK_STATUSES, isTerminal, lifecycleOf, outcomeOf, type TaskStatus } from '../../src/kernel/status.js';

// Row by row: where a status may go, and by which intents.
const SECTION_3: readonly (readonly [TaskStatus | null, TaskStatus, readonly EdgeIntent[]])[] = [
  [null, 'queued', ['submit']],
  ['queued', 'waiting_dependency', ['hold']],
  ['queued', 'running', ['claim']],
  ['queued', 'skipped', ['skip']],
  ['waiting_dependency', 'skipped', ['skip']],
  ['waiting_dependency', 'queued', ['dependencies_met']],
  ['running', 'completed', ['settle']],
  ['running', 'failed', ['settle', 'retry', 'lease_lost', 'hand_back']],
  ['running', 'timed_out', ['settle', 'deadline']],
  ['running', 'cancelled', ['settle', 'retry', 'lease_lost', 'hand_back', 'release', 'deadline']],
  ['running', 'retry_wait', ['retry', 'lease_lost', 'hand_back', 'release']],
  ['running', 'suspended', ['suspend']],
  ['queued', 'suspended', ['suspend']],
  ['waiting_dependency', 'suspended', ['suspend']],
  ['retry_wait', 'suspended', ['suspend']],
  ['suspended', 'queued', ['resume', 'new_generation']],
  ['suspended', 'waiting_dependency', ['resume']],
  ['retry_wait', 'queued', ['retry_due']],
  ['queued', 'cancelled', ['cancel']],
  ['waiting_dependency', 'cancelled', ['cancel']],
  ['retry_wait', 'cancelled', ['cancel']],
  ['suspended', 'cancelled', ['cancel']],
  ['queued', 'timed_out', ['deadline']],
  ['waiting_dependency', 'timed_out', ['deadline']],
  ['retry_wait', 'timed_out', ['deadline']],
  ['suspended', 'timed_out', ['deadline']],
  ['queued', 'failed', ['settle']],
  ['waiting_dependency', 'failed', ['settle']],
  ['retry_wait', 'failed', ['settle']],
  ['suspended', 'failed', ['settle']],
  ['completed', 'queued', ['new_generation']],
  ['failed', 'queued', ['new_generation']],
  ['timed_out', 'queued', ['new_generation']],
  ['cancelled', 'queued', ['new_generation']],
  ['skipped', 'queued', ['new_generation']],
];

const INTENTS: readonly EdgeIntent[] = [...new Set(SECTION_3.flatMap(([, , by]) => by))];

describe('edges', () => {
  it('are each declared once', () => {
    const names = EDGES.map(({ from, to }) => `${from ?? 'nothing'} to ${to}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('of every pair of statuses are those of section 3, by the intents of section 3', () => {
    for (const from of [null, ...TASK_STATUSES]) {
      for (const to of TASK_STATUSES) {
        const row = SECTION_3.find((edge) => edge[0] === from && edge[1] === to);
        expect(isDeclaredEdge(from, to), `${from ?? 'nothing'} to ${to}`).toBe(row !== undefined);
        for (const by of INTENTS) {
          expect(mayTake(from, to, by), `${from ?? 'nothing'} to ${to} by ${by}`).toBe(row?.[2].includes(by) ?? false);
        }
      }
    }
  });

  it('leave a terminal status by a new generation only', () => {
    for (const from of TASK_STATUSES.filter(isTerminal)) {
      expect(EDGES.filter((edge) => edge.from === from).map(({ to, by }) => ({ to, by }))).toEqual([
        { to: 'queued', by: ['new_generation'] },
      ]);
    }
    const fromSuspended = EDGES.filter((edge) => edge.from === 'suspended').map((edge) => edge.to);
    expect(fromSuspended.sort()).toEqual(['cancelled', 'failed', 'queued', 'timed_out', 'waiting_dependency'].sort());
  });
});

describe('views of a status', () => {
  it.each([
    ['queued', 'registered', 'active', null],
    ['waiting_dependency', 'registered', 'active', null],
    ['running', 'active', 'active', null],
    ['retry_wait', 'active', 'active', null],
    ['suspended', 'suspended', 'suspended', null],
    ['completed', 'terminal', 'terminal', 'completed'],
    ['failed', 'terminal', 'terminal', 'failed'],
    ['timed_out', 'terminal', 'terminal', 'timed_out'],
    ['cancelled', 'terminal', 'terminal', 'cancelled'],
    ['skipped', 'terminal', 'terminal', 'cancelled'],
  ] as const)('%s', (status, beforeAnyClaim, afterOne, outcome) => {
    expect(lifecycleOf(status, false)).toBe(beforeAnyClaim);
    expect(lifecycleOf(status, true)).toBe(afterOne);
    expect(outcomeOf(status)).toBe(outcome);
    expect(isTerminal(status)).toBe(outcome !== null);
  });

  it('are given for every status', () => {
    expect(TASK_STATUSES).toHaveLength(10);
    expect(new Set(TASK_STATUSES).size).toBe(10);
  });
});
