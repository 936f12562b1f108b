// Which permits a task needs, how many may hold each, and what a claim without them is told.

import { describe, expect, it } from 'vitest';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import { decide } from '../../src/kernel/decide.js';
import { NO_FAMILY } from '../../src/kernel/draft.js';
import { NO_GUARDS } from '../../src/kernel/intent.js';
import {
  NO_PERMITS,
  NO_PERMIT_RULES,
  type PermitRules,
  permitLimit,
  permitStance,
  permitsOf,
  subjectOf,
} from '../../src/kernel/permits.js';
import type { Admission } from '../../src/kernel/record.js';
import { STATE_NAMES, recordIn } from './decide-states.js';
import { T0, TaskWorld, WORKER, admission } from './task-world.js';

const RULES: PermitRules = {
  keyLimits: [
    { pattern: 'tenant-*-bulk', limit: 2 },
    { pattern: 'tenant-*', limit: 4 },
    { pattern: 'exact', limit: 3 },
    { pattern: '*a*b*', limit: 5 },
  ],
  capabilities: new Map([
    ['gpu', 'serialization'],
    ['tape', 'serialization'],
    ['warm', 'affinity'],
    ['linux', 'eligibility'],
  ]),
};

function needing(
  policy: TaskPolicyInput,
  requiredCapabilities: readonly string[] = [],
  namespace = 'default',
): Admission {
  const one = admission(policy);
  return { ...one, namespace, application: { ...one.application, requiredCapabilities } };
}

const limitOf = (concurrencyKey: string): number | undefined => permitsOf(needing({ concurrencyKey }), RULES)[0]?.limit;

describe('the permits of a task', () => {
  it('are none without a key and a serialized capability, and then always the same', () => {
    expect(permitsOf(needing({}), RULES)).toBe(NO_PERMITS);
    expect(permitsOf(needing({}, ['gpu']), NO_PERMIT_RULES)).toBe(NO_PERMITS);
    expect(permitsOf(needing({}, ['linux', 'warm', 'unknown']), RULES)).toEqual([]);
  });

  it('are one of its key within its namespace and one of each serialized capability, in the order of names', () => {
    const permits = permitsOf(needing({ concurrencyKey: 'exact' }, ['tape', 'linux', 'gpu'], 'team'), RULES);
    expect(permits.map(({ name, limit }) => [subjectOf(name), limit])).toEqual([
      [{ kind: 'key', namespace: 'team', key: 'exact' }, 3],
      [{ kind: 'capability', label: 'gpu' }, 1],
      [{ kind: 'capability', label: 'tape' }, 1],
    ]);
    expect(permits.map(({ name }) => name)).toEqual(permits.map(({ name }) => name).toSorted());
  });

  it('differ for keys of different namespaces, and for a key and a capability of the same text', () => {
    const rules: PermitRules = { keyLimits: [], capabilities: new Map([['gpu', 'serialization']]) };
    const names = [
      ...permitsOf(needing({ concurrencyKey: 'gpu' }), rules),
      ...permitsOf(needing({ concurrencyKey: 'gpu' }, [], 'other'), rules),
      ...permitsOf(needing({}, ['gpu']), rules),
    ].map(({ name }) => name);
    expect(new Set(names).size).toBe(3);
  });
});

describe('the limit of a key', () => {
  it.each([
    ['tenant-7', 4],
    ['tenant-', 4],
    ['tenant-7-bulk', 2],
    ['tenant--bulk', 2],
    ['tenant-bulk', 4],
    ['exact', 3],
    ['exactly', 1],
    ['Exact', 1],
    ['xaxbx', 5],
    ['ab', 5],
    ['ba', 1],
    ['other', 1],
  ])('%j may be held by %d', (key, limit) => {
    expect(limitOf(key)).toBe(limit);
    const [permit] = permitsOf(needing({ concurrencyKey: key }), RULES);
    expect(permitLimit(permit?.name ?? '', RULES)).toBe(limit);
  });

  it('is found in time that does not explode with the stars of its pattern', () => {
    const keyLimits = [{ pattern: `${'*a'.repeat(60)}*b`, limit: 9 }];
    const [permit] = permitsOf(needing({ concurrencyKey: 'a'.repeat(250) }), { keyLimits, capabilities: new Map() });
    expect(permit?.limit).toBe(1);
  });

  it('is nobody’s for a capability that is not serialized any more', () => {
    const [gpu] = permitsOf(needing({}, ['gpu']), RULES);
    expect(permitLimit(gpu?.name ?? '', RULES)).toBe(1);
    expect(permitLimit(gpu?.name ?? '', NO_PERMIT_RULES)).toBeNull();
  });
});

describe('how a record stands to its permits', () => {
  it.each(STATE_NAMES)('%s', (state) => {
    const held = /^(running|cancelling)_/.test(state);
    expect(permitStance(recordIn(state))).toBe(state === 'queued' ? 'queued' : held ? 'running' : 'none');
  });
});

describe('a claim of a task that waits for a permit', () => {
  const claim = {
    kind: 'claim',
    sessionId: 's',
    worker: 'w',
    sessionTtlMs: 1,
    acceptTimeoutMs: 1,
    cause: WORKER,
  } as const;

  it.each([
    ['key\ndefault\nk', { concurrency_key: 'k' }],
    ['serialized\ngpu', { capability: 'gpu' }],
  ])('is refused as one whose start is delayed, and names it: %j', (permitAwaited, metadata) => {
    const { record } = TaskWorld.admit({ concurrencyKey: 'k' });
    const decided = decide(record, claim, T0, NO_GUARDS, { ...NO_FAMILY, permitAwaited });
    expect(decided).toMatchObject({ kind: 'refused', refusal: { reason: 'INVALID_TRANSITION', metadata } });
    expect(decide(record, claim, T0)).toMatchObject({ kind: 'applied' });
  });
});
