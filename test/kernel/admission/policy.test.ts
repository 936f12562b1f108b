// Policy: defaults, bounds with the field named, and which fields differ.

import { describe, expect, it } from 'vitest';

import { policyDifferences, resolvePolicy } from '../../../src/kernel/admission/policy.js';
import type { TaskPolicy, TaskPolicyInput } from '../../../src/kernel/admission/policy.js';

const tenYearsMs = 10 * 365 * 24 * 3_600_000;

function resolved(input: TaskPolicyInput = {}): TaskPolicy {
  const outcome = resolvePolicy(input);
  if (!outcome.ok) throw new Error(`${outcome.refusal.field}: ${outcome.refusal.detail}`);
  return outcome.value;
}

const defaults: TaskPolicy = {
  priority: 0,
  labels: {},
  description: null,
  timeoutMs: null,
  startByMs: null,
  notBeforeAtMs: null,
  attemptTimeoutMs: null,
  progressTimeoutMs: null,
  retry: { maxAttempts: 3, initialMs: 1_000, multiplier: 2, maximumMs: 300_000, jitter: 0.2, nonRetryableCodes: [] },
  cancellationPolicy: 'COOPERATIVE',
  concurrencyKey: null,
  retentionMs: null,
  parent: null,
  dependsOn: [],
  onUnsatisfied: 'skip',
};

describe('resolvePolicy', () => {
  it('fills in every default', () => {
    expect(resolved()).toEqual(defaults);
    expect(resolved({ priority: null, labels: null, retry: null, timeoutMs: undefined })).toEqual(defaults);
  });

  it('takes everything at its bounds', () => {
    const input: TaskPolicyInput = {
      priority: -100,
      labels: Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`k${index}`, 'v'.repeat(256)])),
      description: `a\n${'b'.repeat(4_094)}`,
      timeoutMs: tenYearsMs,
      startByMs: 1,
      notBeforeAtMs: 253_402_300_799_999,
      attemptTimeoutMs: 1,
      progressTimeoutMs: tenYearsMs,
      retry: { maxAttempts: 1_000, initialMs: 0, multiplier: 10, maximumMs: 0, jitter: 1 },
      cancellationPolicy: 'FENCED',
      concurrencyKey: 'k',
      retentionMs: 0,
    };
    expect(resolved(input)).toMatchObject({ priority: -100, retentionMs: 0, retry: { maximumMs: 0, jitter: 1 } });
  });

  it('sorts labels and codes, and keeps a label named __proto__', () => {
    const labels: Record<string, string> = JSON.parse('{"b":"1","a":"2","__proto__":"3"}') as Record<string, string>;
    expect(Object.entries(resolved({ labels }).labels)).toEqual([
      ['__proto__', '3'],
      ['a', '2'],
      ['b', '1'],
    ]);
    expect(resolved({ retry: { nonRetryableCodes: ['b', 'a', 'b'] } }).retry.nonRetryableCodes).toEqual(['a', 'b']);
  });

  it('lets the default of one retry delay give way to the other', () => {
    expect(resolved({ retry: { initialMs: 600_000 } }).retry).toMatchObject({ initialMs: 600_000, maximumMs: 600_000 });
    expect(resolved({ retry: { maximumMs: 10 } }).retry).toMatchObject({ initialMs: 10, maximumMs: 10 });
  });

  it.each<[TaskPolicyInput, string]>([
    [{ priority: 101 }, 'priority'],
    [{ priority: -101 }, 'priority'],
    [{ priority: 0.5 }, 'priority'],
    [{ priority: Number.NaN }, 'priority'],
    [{ timeoutMs: 0 }, 'timeout'],
    [{ timeoutMs: -1 }, 'timeout'],
    [{ timeoutMs: tenYearsMs + 1 }, 'timeout'],
    [{ timeoutMs: Infinity }, 'timeout'],
    [{ startByMs: 0 }, 'start_by'],
    [{ attemptTimeoutMs: 0 }, 'attempt_timeout'],
    [{ progressTimeoutMs: 1.5 }, 'progress_timeout'],
    [{ notBeforeAtMs: -1 }, 'not_before'],
    [{ notBeforeAtMs: 253_402_300_800_000 }, 'not_before'],
    [{ retentionMs: -1 }, 'retention'],
    [{ description: 'é'.repeat(2_049) }, 'description'],
    [{ description: '\ud800' }, 'description'],
    [{ cancellationPolicy: '' }, 'cancellation_policy'],
    [{ cancellationPolicy: 'fenced' }, 'cancellation_policy'],
    [{ concurrencyKey: '' }, 'concurrency_key'],
    [{ labels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ''])) }, 'labels'],
    [{ labels: { '': 'v' } }, 'labels[""]'],
    [{ labels: { ' a': 'v' } }, 'labels[" a"]'],
    [{ labels: { team: 'v'.repeat(257) } }, 'labels["team"]'],
    [{ labels: { team: 'a\nb' } }, 'labels["team"]'],
    [{ labels: { ['k'.repeat(129)]: 'v' } }, `labels["${'k'.repeat(40)}"…]`],
    [{ retry: { maxAttempts: 0 } }, 'retry.max_attempts'],
    [{ retry: { maxAttempts: 1_001 } }, 'retry.max_attempts'],
    [{ retry: { initialMs: -1 } }, 'retry.initial'],
    [{ retry: { multiplier: 0.9 } }, 'retry.multiplier'],
    [{ retry: { multiplier: Number.NaN } }, 'retry.multiplier'],
    [{ retry: { initialMs: 10, maximumMs: 9 } }, 'retry.maximum'],
    [{ retry: { jitter: 1.1 } }, 'retry.jitter'],
    [{ retry: { jitter: -0.1 } }, 'retry.jitter'],
    [{ retry: { nonRetryableCodes: ['a', ''] } }, 'retry.non_retryable_codes[1]'],
    [{ retry: { nonRetryableCodes: Array<string>(65).fill('a') } }, 'retry.non_retryable_codes'],
  ])('%j is refused', (input, field) => {
    expect(resolvePolicy(input)).toMatchObject({ ok: false, refusal: { reason: 'MALFORMED', field } });
  });
});

describe('policyDifferences', () => {
  it.each<[TaskPolicyInput, string]>([
    [{ priority: 1 }, 'priority'],
    [{ labels: { a: '1' } }, 'labels'],
    [{ description: '' }, 'description'],
    [{ timeoutMs: 1 }, 'timeout'],
    [{ startByMs: 1 }, 'start_by'],
    [{ notBeforeAtMs: 0 }, 'not_before'],
    [{ attemptTimeoutMs: 1 }, 'attempt_timeout'],
    [{ progressTimeoutMs: 1 }, 'progress_timeout'],
    [{ retry: { maxAttempts: 1 } }, 'retry'],
    [{ retry: { nonRetryableCodes: ['a'] } }, 'retry'],
    [{ cancellationPolicy: 'FENCED' }, 'cancellation_policy'],
    [{ concurrencyKey: 'k' }, 'concurrency_key'],
    [{ retentionMs: 0 }, 'retention'],
  ])('%j differs from the default', (input, field) => {
    expect(policyDifferences(resolved(), resolved(input))).toEqual([field]);
    expect(policyDifferences(resolved(input), resolved())).toEqual([field]);
  });

  it('names every field of a policy', () => {
    const other = resolved({
      priority: 1,
      labels: { a: '' },
      description: 'd',
      timeoutMs: 1,
      startByMs: 1,
      notBeforeAtMs: 1,
      attemptTimeoutMs: 1,
      progressTimeoutMs: 1,
      retry: { jitter: 0 },
      cancellationPolicy: 'FENCED',
      concurrencyKey: 'k',
      retentionMs: 1,
      parent: { taskId: 'p', generationId: 'g', attached: true },
      dependsOn: [{ taskId: 'd', condition: 'terminal' }],
      onUnsatisfied: 'fail',
    });
    expect(policyDifferences(resolved(), other)).toHaveLength(Object.keys(defaults).length);
  });

  it('does not see the order in which labels and codes were given', () => {
    const left = resolved({ labels: { a: '1', b: '2' }, retry: { nonRetryableCodes: ['x', 'y'] } });
    const right = resolved({ labels: { b: '2', a: '1' }, retry: { nonRetryableCodes: ['y', 'x', 'x'] } });
    expect(policyDifferences(left, right)).toEqual([]);
    expect(policyDifferences(left, resolved({ labels: { a: '1', c: '2' } }))).toEqual(['labels', 'retry']);
  });
});
