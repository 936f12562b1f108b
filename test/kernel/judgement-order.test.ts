// The order of judgement (lifecycle.md section 4): where two rules both apply, the earlier one is the answer. Every
// pair is shown with both rules broken, and the later rule alone, so that neither half of a case is empty.

import { describe, expect, it } from 'vitest';
import { decide } from '../../src/kernel/decide.js';
import { NO_GUARDS, type Guards, type Intent, type LeaseProof } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { type StateName, recordIn } from './decide-states.js';
import { OPERATOR, OWNER, STRANGER, WORKER, cause, claim, settle } from './task-world.js';

const RIGHT: LeaseProof = { epoch: 1, sessionId: OWNER };
const WRONG: LeaseProof = { epoch: 1, sessionId: STRANGER };
const SKIP: Intent = { kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) };
const BARE_SKIP: Intent = { kind: 'skip', cause: OPERATOR };

function suspend(lease: LeaseProof | null): Intent {
  return { kind: 'suspend', lease, cause: WORKER };
}

function receipt(lease: LeaseProof): Intent {
  return { kind: 'receipt', lease, acknowledged: false, cause: WORKER };
}

interface Situation {
  readonly state: StateName;
  readonly intent: Intent;
  readonly guards?: Partial<Guards>;
}

function answer({ state, intent, guards }: Situation): string {
  const record = recordIn(state);
  const decision = decide(record, intent, record.updatedAt, { ...NO_GUARDS, ...guards });
  if (decision.kind === 'refused') return decision.refusal.reason;
  return decision.kind === 'conflict' ? decision.guard : decision.kind;
}

// A caller's guards can be broken together with any rule after them.
const BROKEN_GUARDS: readonly (readonly [string, Partial<Guards>])[] = [
  ['STALE_GENERATION', { generationId: 'generation-0' }],
  ['FROM_STATUS', { fromStatus: 'waiting_dependency' }],
  ['REVISION', { expectedRevision: 99 }],
];

const LATER: readonly (readonly [string, Situation])[] = [
  ['LEASE', { state: 'running_started', intent: settle('completed', { lease: WRONG }) }],
  ['LEASE', { state: 'running_started', intent: suspend(WRONG) }],
  ['LEASE_REQUIRED', { state: 'running_started', intent: settle('completed') }],
  ['LEASE_LOST', { state: 'running_started', intent: receipt(WRONG) }],
  ['TERMINAL_GENERATION', { state: 'completed', intent: claim() }],
  ['TERMINAL_GENERATION', { state: 'skipped', intent: settle('failed') }],
  ['INVALID_TRANSITION', { state: 'suspended_by_holder', intent: claim() }],
  ['INVALID_TRANSITION', { state: 'queued_delayed', intent: claim() }],
  ['INVALID_TRANSITION', { state: 'queued', intent: settle('completed') }],
  ['INVALID_TRANSITION', { state: 'running_started', intent: SKIP }],
  ['CANCELLATION_FENCED', { state: 'cancelling_cooperative', intent: suspend(RIGHT) }],
  ['CANCELLATION_FENCED', { state: 'cancelling_fenced', intent: settle('completed', { lease: RIGHT }) }],
  ['CANCELLATION_NOT_REQUESTED', { state: 'queued', intent: settle('cancelled') }],
];

describe.each(BROKEN_GUARDS)('%s comes before', (earlier, guards) => {
  it.each(LATER)('%s in %o', (later, situation) => {
    expect(answer(situation)).toBe(later);
    expect(answer({ ...situation, guards })).toBe(earlier);
  });
});

describe('guards among themselves', () => {
  it.each([
    ['STALE_GENERATION', 0, 1],
    ['STALE_GENERATION', 0, 2],
    ['FROM_STATUS', 1, 2],
  ] as const)('%s comes first', (earlier, first, second) => {
    const guards = { ...BROKEN_GUARDS[second]?.[1] };
    const situation = { state: 'queued', intent: claim() } as const;
    expect(answer({ ...situation, guards })).toBe(BROKEN_GUARDS[second]?.[0]);
    expect(answer({ ...situation, guards: { ...guards, ...BROKEN_GUARDS[first]?.[1] } })).toBe(earlier);
  });
});

// [earlier rule, both broken, later rule, the later one alone]
const PAIRS: readonly (readonly [string, Situation, string, Situation])[] = [
  [
    'LEASE',
    { state: 'completed', intent: settle('failed', { lease: RIGHT }) },
    'TERMINAL_GENERATION',
    { state: 'completed', intent: settle('failed') },
  ],
  [
    'LEASE',
    { state: 'queued', intent: settle('completed', { lease: RIGHT }) },
    'INVALID_TRANSITION',
    { state: 'queued', intent: settle('completed') },
  ],
  [
    'LEASE',
    { state: 'suspended_by_holder', intent: suspend(RIGHT) },
    'INVALID_TRANSITION',
    { state: 'suspended_by_holder', intent: suspend(null) },
  ],
  [
    'LEASE',
    { state: 'cancelling_fenced', intent: settle('completed', { lease: WRONG }) },
    'CANCELLATION_FENCED',
    { state: 'cancelling_fenced', intent: settle('completed', { lease: RIGHT }) },
  ],
  [
    'LEASE',
    { state: 'cancelling_cooperative', intent: suspend(WRONG) },
    'CANCELLATION_FENCED',
    { state: 'cancelling_cooperative', intent: suspend(RIGHT) },
  ],
  [
    'LEASE',
    { state: 'queued', intent: settle('cancelled', { lease: RIGHT }) },
    'CANCELLATION_NOT_REQUESTED',
    { state: 'queued', intent: settle('cancelled') },
  ],
  [
    'LEASE_REQUIRED',
    { state: 'cancelling_fenced', intent: settle('completed') },
    'CANCELLATION_FENCED',
    { state: 'cancelling_fenced', intent: settle('completed', { lease: RIGHT }) },
  ],
  [
    'LEASE_REQUIRED',
    { state: 'running_started', intent: settle('cancelled') },
    'CANCELLATION_NOT_REQUESTED',
    { state: 'retry_wait', intent: settle('cancelled') },
  ],
  [
    'LEASE_LOST',
    { state: 'completed', intent: receipt(RIGHT) },
    'TERMINAL_GENERATION',
    { state: 'completed', intent: claim() },
  ],
  [
    'TERMINAL_GENERATION',
    { state: 'completed', intent: claim() },
    'INVALID_TRANSITION',
    { state: 'running_started', intent: claim() },
  ],
  [
    'TERMINAL_GENERATION',
    { state: 'cancelled', intent: suspend(null) },
    'CANCELLATION_FENCED',
    { state: 'cancelling_cooperative', intent: suspend(null) },
  ],
  [
    'TERMINAL_GENERATION',
    { state: 'failed', intent: settle('cancelled') },
    'CANCELLATION_NOT_REQUESTED',
    { state: 'queued', intent: settle('cancelled') },
  ],
  [
    'INVALID_TRANSITION',
    { state: 'cancelling_cooperative', intent: claim() },
    'CANCELLATION_FENCED',
    { state: 'cancelling_cooperative', intent: suspend(null) },
  ],
];

describe('the earlier of two rules answers', () => {
  it.each(PAIRS)('%s (%o) before %s (%o)', (earlier, both, later, alone) => {
    expect(answer(both)).toBe(earlier);
    expect(answer(alone)).toBe(later);
  });
});

describe('MALFORMED comes before everything', () => {
  it.each<[string, Omit<Situation, 'intent'>]>([
    ['STALE_GENERATION', { state: 'queued', guards: { generationId: 'generation-0' } }],
    ['FROM_STATUS', { state: 'queued', guards: { fromStatus: 'running' } }],
    ['REVISION', { state: 'queued', guards: { expectedRevision: 99 } }],
    ['TERMINAL_GENERATION', { state: 'completed' }],
    ['INVALID_TRANSITION', { state: 'running_started' }],
  ])('%s', (later, situation) => {
    expect(answer({ ...situation, intent: SKIP })).toBe(later);
    expect(answer({ ...situation, intent: BARE_SKIP })).toBe('MALFORMED');
  });
});

describe('Resume', () => {
  it('is the one intent that a terminal generation takes', () => {
    const intent: Intent = {
      kind: 'resume',
      newGenerationId: 'g2',
      spareGenerationId: 's',
      inputJson: null,
      cause: OPERATOR,
    };
    for (const state of ['completed', 'failed', 'timed_out', 'cancelled', 'skipped'] as const) {
      expect(answer({ state, intent })).toBe('applied');
    }
  });

  it('of what is neither suspended nor terminal is INVALID_TRANSITION, whatever id it names', () => {
    for (const newGenerationId of [null, 'g2', 'generation-1']) {
      const intent: Intent = {
        kind: 'resume',
        newGenerationId,
        spareGenerationId: 's',
        inputJson: null,
        cause: OPERATOR,
      };
      expect(answer({ state: 'queued', intent })).toBe('INVALID_TRANSITION');
      expect(answer({ state: 'running_started', intent })).toBe('INVALID_TRANSITION');
    }
  });
});
