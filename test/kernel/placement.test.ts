// Routes, subscriptions and the place in a queue (lifecycle.md sections 5 and 7).

import { describe, expect, it } from 'vitest';
import {
  type CapabilityClass,
  type PlacementRules,
  type Route,
  type Subscription,
  preference,
  readyOrder,
  routeKeyOf,
  routeOf,
  serves,
} from '../../src/kernel/placement.js';
import type { Admission } from '../../src/kernel/record.js';
import { STATE_NAMES, recordIn } from './decide-states.js';
import { T0, TaskWorld, admission } from './task-world.js';

function withApplication(change: Partial<Admission['application']>, rest: Partial<Admission> = {}): Admission {
  const admitted = admission();
  return { ...admitted, ...rest, application: { ...admitted.application, ...change } };
}

const EVERYTHING: Subscription = {
  namespaces: new Set(['default']),
  queues: null,
  actionKinds: null,
  executionTargets: null,
  capabilities: new Set(['gpu', 'linux']),
};

const ROUTE: Route = routeOf(withApplication({ requiredCapabilities: ['gpu', 'linux'] }));

describe('the place in a queue', () => {
  it('is the queue time less a minute per step of priority', () => {
    expect(readyOrder(TaskWorld.admit().record)).toBe(T0);
    expect(readyOrder(TaskWorld.admit({ priority: 10 }).record)).toBe(T0 - 600_000);
    expect(readyOrder(TaskWorld.admit({ priority: -100 }).record)).toBe(T0 + 6_000_000);
  });

  it.each(STATE_NAMES)('%s', (state) => {
    expect(readyOrder(recordIn(state))).toBe(state === 'queued' ? T0 : null);
  });
});

describe('a route', () => {
  it('is served by a session that asked for all of it', () => {
    expect(serves(EVERYTHING, ROUTE)).toBe(true);
    const exactly: Subscription = {
      namespaces: new Set(['default']),
      queues: new Set(['main']),
      actionKinds: new Set(['agent']),
      executionTargets: new Set(['host']),
      capabilities: new Set(['gpu', 'linux', 'fast']),
    };
    expect(serves(exactly, ROUTE)).toBe(true);
  });

  it.each<[string, Partial<Subscription>]>([
    ['namespaces', { namespaces: new Set(['other']) }],
    ['no namespace', { namespaces: new Set() }],
    ['queues', { queues: new Set(['side']) }],
    ['no queue', { queues: new Set() }],
    ['kinds', { actionKinds: new Set(['flow']) }],
    ['targets', { executionTargets: new Set(['process'] as const) }],
    ['capabilities', { capabilities: new Set(['gpu']) }],
  ])('is not served by one with other %s', (_name, change) => {
    expect(serves({ ...EVERYTHING, ...change }, ROUTE)).toBe(false);
  });

  it('has a key that is equal exactly when the route is', () => {
    const variants = [
      withApplication({}),
      withApplication({}, { namespace: 'other' }),
      withApplication({}, { queue: 'side' }),
      withApplication({ actionKind: 'flow' }),
      withApplication({ executionTarget: 'process' }),
      withApplication({ requiredCapabilities: ['gpu'] }),
      withApplication({ requiredCapabilities: ['gpu', 'linux'] }),
    ];
    expect(new Set(variants.map(routeKeyOf)).size).toBe(variants.length);
    expect(routeKeyOf(withApplication({}, { taskId: 'another' }))).toBe(routeKeyOf(withApplication({})));
  });
});

describe('what the deployment says about placement', () => {
  const classes = (...given: (readonly [string, CapabilityClass])[]): PlacementRules => ({
    actionKinds: null,
    capabilityClasses: new Map(given),
  });
  const having = (...labels: string[]): Subscription => ({ ...EVERYTHING, capabilities: new Set(labels) });
  const warm = classes(['linux', 'affinity']);

  it('an affinity label is not required, all others are', () => {
    expect(serves(having('gpu'), ROUTE)).toBe(false);
    expect(serves(having('gpu'), ROUTE, warm)).toBe(true);
    expect(serves(having('linux'), ROUTE, warm)).toBe(false);
    for (const other of ['eligibility', 'serialization'] as const) {
      expect(serves(having('gpu'), ROUTE, classes(['linux', other]))).toBe(false);
    }
  });

  it('an affinity label is preferred: who has more of those that the task names suits it better', () => {
    const rules = classes(['linux', 'affinity'], ['gpu', 'affinity'], ['disk', 'affinity']);
    const suits = (...labels: string[]) => preference(having(...labels), ROUTE, rules);
    expect([suits(), suits('disk'), suits('gpu', 'disk'), suits('linux', 'gpu')]).toEqual([0, 0, 1, 2]);
    expect(preference(having('linux', 'gpu'), ROUTE, classes())).toBe(0);
  });

  it('a kind that is not registered is served by nobody, not even by who serves every kind', () => {
    const registered = (...kinds: string[]): PlacementRules => ({ ...classes(), actionKinds: new Set(kinds) });
    expect(serves(EVERYTHING, ROUTE, registered('agent'))).toBe(true);
    expect(serves(EVERYTHING, ROUTE, registered('flow'))).toBe(false);
    const named = { ...EVERYTHING, actionKinds: new Set(['agent']) };
    expect(serves(named, ROUTE, registered('flow'))).toBe(false);
  });
});
