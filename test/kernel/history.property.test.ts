// Random histories of one task over the real kernel: whatever is asked, in whatever order, the invariants hold.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AEP_STATES } from '../../src/kernel/aep.js';
import { EDGES } from '../../src/kernel/edges.js';
import { Invariants } from './history-invariants.js';
import { Walk, policies, steps, type Happened, type Step } from './history-walk.js';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';

function walk(
  policy: TaskPolicyInput,
  path: readonly Step[],
  look: (happened: Happened) => void = () => undefined,
): Walk {
  const walked = new Walk(policy);
  const invariants = new Invariants();
  for (const step of path) {
    const happened = walked.take(step);
    invariants.check(happened);
    look(happened);
  }
  invariants.checkFold(walked.record, walked.history);
  return walked;
}

describe('random histories', () => {
  it('keep every invariant at every step', () => {
    fc.assert(
      fc.property(policies, steps, (policy, path) => {
        walk(policy, path);
      }),
      { numRuns: 5_000 },
    );
  });

  it('are worth the name: from one seed they meet every edge, every AEP state, every verdict', () => {
    const seen = new Set<string>();
    const edges = new Set<string>();
    let longestLife = 0;
    const look = ({ events, did, after }: Happened): void => {
      longestLife = Math.max(longestLife, after.generation);
      for (const event of events) {
        seen.add(event.type).add(`aep ${event.aep ?? '-'}`);
        if (event.inferred) seen.add('inferred');
        if (event.cause.reason !== null) seen.add(event.cause.reason.code);
        if (event.to !== null) edges.add(`${event.from ?? ''}>${event.to}`);
      }
      if (did.kind === 'report') for (const { refusal } of did.answer.refused) seen.add(refusal.reason);
      else if (did.kind === 'family') return;
      else if (did.verdict.kind === 'refused') seen.add(did.verdict.refusal.reason);
      else if (did.verdict.kind === 'conflict') seen.add(`conflict ${did.verdict.guard}`);
      else seen.add(did.verdict.kind);
    };
    fc.assert(
      fc.property(policies, steps, (policy, path) => {
        walk(policy, path, look);
      }),
      { numRuns: 5_000, seed: 72 },
    );
    const reachable = EDGES.filter(
      ({ from, to }) => from !== null && from !== 'waiting_dependency' && to !== 'waiting_dependency',
    );
    expect(reachable.map(({ from, to }) => `${from ?? ''}>${to}`).filter((edge) => !edges.has(edge))).toEqual([]);
    const expected = [
      ...AEP_STATES.map((state) => `aep ${state}`),
      'aep -',
      'inferred',
      'unchanged',
      'conflict FROM_STATUS',
      'conflict REVISION',
      'conflict LEASE',
      'MALFORMED',
      'STALE_GENERATION',
      'LEASE_LOST',
      'LEASE_REQUIRED',
      'TERMINAL_GENERATION',
      'INVALID_TRANSITION',
      'ILLEGAL_EVENT',
      'EVENT_GAP',
      'CANCELLATION_FENCED',
      'CANCELLATION_NOT_REQUESTED',
      'reeve.task.ready',
      'reeve.task.checkpoint',
      'reeve.task.cancel_delivered',
      'reeve.task.cancel_acknowledged',
      'run.cancelled.grace_expired',
      'run.cancelled.owner_lost',
      'run.cancelled.attempt_ended',
      'run.cancelled.deadline',
      'run.cancelled.unasked',
      'run.cancelled.acknowledged',
      'run.timed_out.start_by',
      'run.timed_out.deadline',
      'run.failed.lease_attempts_exhausted',
      'run.failed.attempts_exhausted',
      'run.failed.not_retryable',
      'run.failed.no_progress',
      'run.failed.attempt_timed_out',
      'run.requeued.claim_forgotten',
    ];
    expect(expected.filter((what) => !seen.has(what))).toEqual([]);
    expect(longestLife).toBeGreaterThanOrEqual(4);
  });
});
