// Who may say what of a cause (lifecycle.md section 4): actor types and reason codes; and
// that a fact names what brought it about.

import { describe, expect, it } from 'vitest';
import { authorityCause, mayClaimActor, type ActorType } from '../../src/kernel/cause.js';
import type { Intent } from '../../src/kernel/intent.js';
import { REASON_CODES, mayStateReason, reason, type ReasonCodeName } from '../../src/kernel/reason-codes.js';
import { malformed, refuse } from '../../src/kernel/refusal.js';
import { OWNER, TaskWorld, cause } from './task-world.js';

const CODES = Object.keys(REASON_CODES) as ReasonCodeName[];

describe('actor types', () => {
  it.each<[ActorType, boolean]>([
    ['producer', true],
    ['operator', true],
    ['webhook', true],
    ['worker', false],
    ['schedule', false],
    ['reaper', false],
    ['parent', false],
    ['dependency', false],
    ['recovery', false],
    ['admin', false],
  ])('%s may be claimed by a caller: %s', (type, may) => {
    expect(mayClaimActor(type)).toBe(may);
  });
});

describe('reason codes', () => {
  it('are three dotted segments with a summary', () => {
    for (const code of CODES) {
      expect(code).toMatch(/^run\.[a-z_]+\.[a-z_]+$/);
      expect(reason(code).summary).not.toBe('');
    }
  });

  it('that callers may state are these', () => {
    expect(CODES.filter(mayStateReason)).toEqual([
      'run.completed.external',
      'run.failed.operator',
      'run.failed.validation',
      'run.timed_out.external',
      'run.cancelled.requested',
      'run.cancelled.operator',
      'run.cancelled.user',
      'run.suspended.operator',
      'run.resumed.operator',
      'run.resumed.input',
      'run.skipped.operator',
      'run.skipped.policy',
    ]);
  });

  it.each(['app.budget.spent', 'app.x.y', 'app.a_1.b_2'])('%s is a caller’s own', (code) => {
    expect(mayStateReason(code)).toBe(true);
  });

  it.each([
    'app.x',
    'app',
    'app.x.y.z',
    'app.X.y',
    'app.x.',
    'app..y',
    'run.x.y',
    'apps.x.y',
    ' app.x.y',
    'app.x.y\n',
    `app.x.${'y'.repeat(41)}`,
    'toString',
    'constructor',
    '',
  ])('%o is nobody’s', (code) => {
    expect(mayStateReason(code)).toBe(false);
  });

  it('take a better summary where there is one', () => {
    expect(reason('run.cancelled.user', 'changed my mind', ['chat-1'])).toEqual({
      code: 'run.cancelled.user',
      summary: 'changed my mind',
      evidenceRefs: ['chat-1'],
    });
  });
});

describe('a cause of the authority', () => {
  it('says that nobody asked', () => {
    expect(authorityCause('reaper', reason('run.requeued.lease_lost'), 'op-1')).toMatchObject({
      actor: { type: 'reaper', id: 'reeve' },
      source: 'authority',
      causation: 'op-1',
      authoritativeAt: null,
    });
  });
});

describe('refusals', () => {
  it('carry every dynamic value in their metadata, MALFORMED its field', () => {
    expect(refuse('TASK_NOT_FOUND', 'no such task', { task_id: 'x' })).toEqual({
      reason: 'TASK_NOT_FOUND',
      message: 'no such task',
      metadata: { task_id: 'x' },
    });
    expect(malformed('cause.reason', 'is needed', { limit: '1' })).toEqual({
      reason: 'MALFORMED',
      message: 'cause.reason: is needed',
      metadata: { field: 'cause.reason', limit: '1' },
    });
  });
});

describe('a lease that ends without its holder', () => {
  const asked = { ...cause('reaper'), causation: 'the loss of the session' };
  const lost: Intent = { kind: 'session_lost', sessionId: OWNER, cause: asked };
  const lease = { epoch: 1, sessionId: OWNER };
  const handBack = (why: 'undelivered' | 'forgotten'): Intent => ({ kind: 'hand_back', lease, why, cause: asked });
  const started = (): TaskWorld => TaskWorld.admit().claim().say('accepted', 'started');
  const last = (): TaskWorld =>
    TaskWorld.admit({ retry: { maxAttempts: 1 } })
      .claim()
      .say('accepted');

  it.each<[string, TaskWorld, Intent]>([
    ['requeued, its session gone', started(), lost],
    ['failed, its attempts used up', last(), lost],
    ['cancelled, as was asked', started().requestCancel(), lost],
    ['requeued, never accepted', TaskWorld.admit().claim(), lost],
    ['handed back undelivered', TaskWorld.admit().claim(), handBack('undelivered')],
    ['handed back forgotten', started(), handBack('forgotten')],
  ])('every fact names what brought it about: %s', (_, world, intent) => {
    const before = world.draft.events.length;
    world.apply(intent);
    const facts = world.draft.events.slice(before);
    expect(facts.length).toBeGreaterThan(0);
    expect(facts.map(({ cause: { causation } }) => causation)).toEqual(facts.map(() => asked.causation));
  });
});
