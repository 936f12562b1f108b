// Families and dependencies as pure rules: every status of a child under every standing of its parent, what a parent may
// not do while children live, and every fate of a waiter, against lifecycle.md sections 3 and 8.

import { describe, expect, it } from 'vitest';
import type { OnUnsatisfied } from '../../src/kernel/admission/family-policy.js';
import { judge } from '../../src/kernel/decide.js';
import {
  dependencyImpossible,
  dependencySatisfied,
  holdForDependencies,
  satisfies,
} from '../../src/kernel/dependencies.js';
import { Draft } from '../../src/kernel/draft.js';
import { familyRefusal, followParent, noteFollower } from '../../src/kernel/family.js';
import { fold } from '../../src/kernel/fold.js';
import type { Intent, SuspendIntent } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { TASK_STATUSES, type TaskStatus, isTerminal } from '../../src/kernel/status.js';
import { OPERATOR, OWNER, PRODUCER, T0, admission, cause, claim, failure, settle } from './task-world.js';

const LINK = { taskId: 'parent', generationId: 'parent-1', attached: true };
const SUSPEND: SuspendIntent = { kind: 'suspend', lease: null, cause: OPERATOR };
const CANCEL: Intent = { kind: 'request_cancellation', graceMs: null, cause: PRODUCER };
const SKIP: Intent = {
  kind: 'skip',
  cause: cause('operator', { code: 'run.skipped.operator', summary: '', evidenceRefs: [] }),
};
const HELD = { epoch: 1, sessionId: OWNER };
const UPSTREAM = { taskId: 'upstream', causation: 'upstream~e4' };

/** The steps that take a task from its admission to a status. */
const WAYS: Readonly<Record<TaskStatus, readonly Intent[]>> = {
  queued: [],
  waiting_dependency: [],
  running: [claim()],
  retry_wait: [claim(), settle('failed', { lease: HELD })],
  suspended: [SUSPEND],
  completed: [claim(), settle('completed', { lease: HELD })],
  failed: [settle('failed')],
  timed_out: [claim(), settle('timed_out', { lease: HELD, ending: failure() })],
  cancelled: [CANCEL],
  skipped: [SKIP],
};

function draftIn(status: TaskStatus, onUnsatisfied: OnUnsatisfied = 'skip', parent: typeof LINK | null = null): Draft {
  const admitted = { ...admission({ onUnsatisfied, parent }), taskId: parent === null ? 'waiter' : 'child' };
  const draft = Draft.admit(admitted, 'g1', null, PRODUCER);
  if (status === 'waiting_dependency') holdForDependencies(draft, 1, PRODUCER);
  for (const intent of WAYS[status]) judge(draft, intent);
  expect(draft.record.status).toBe(status);
  return draft;
}

function parentIn(status: TaskStatus, asked = false): TaskRecord {
  const draft = Draft.admit({ ...admission(), taskId: 'parent' }, 'parent-1', null, PRODUCER);
  if (status === 'waiting_dependency') holdForDependencies(draft, 1, PRODUCER);
  for (const intent of WAYS[status]) judge(draft, intent);
  if (asked) judge(draft, CANCEL);
  return draft.record;
}

function assertFolds(draft: Draft): void {
  expect(fold(draft.record.admission, draft.events)).toEqual(draft.record);
}

describe('a child follows its parent', () => {
  const standings = TASK_STATUSES.flatMap((child) => TASK_STATUSES.map((parent) => [child, parent] as const));
  it.each(standings)('%s under a parent that is %s', (status, parentStatus) => {
    const draft = draftIn(status, 'skip', LINK);
    const before = draft.record;
    draft.parent = parentIn(parentStatus);
    const changed = followParent(draft);
    const ends = isTerminal(parentStatus) && parentStatus !== 'completed' && !isTerminal(status);
    expect(changed).toBe(ends);
    if (!ends) return expect(draft.record).toBe(before);
    const outcome = parentStatus === 'skipped' ? 'cancelled' : parentStatus;
    expect(draft.record).toMatchObject({
      status: outcome,
      reason: { code: `run.${outcome}.parent` },
      ownerStopped: status === 'running' ? false : before.ownerStopped,
      lease: null,
    });
    expect(draft.events.at(-1)?.cause).toMatchObject({ actor: { type: 'parent', id: 'parent' }, source: 'authority' });
    assertFolds(draft);
  });

  it.each(TASK_STATUSES)('%s under a parent that was asked to end', (status) => {
    const draft = draftIn(status, 'skip', LINK);
    const before = draft.record;
    draft.parent = parentIn('running', true);
    expect(followParent(draft)).toBe(!isTerminal(status));
    if (isTerminal(status)) return expect(draft.record).toBe(before);
    expect(draft.record.status).toBe(status === 'running' ? 'running' : 'cancelled');
    expect(draft.record.cancellation).toMatchObject({ reason: { code: 'run.cancelled.parent' }, graceEndsAt: null });
    // A second look finds nothing left to do.
    expect(followParent(draft)).toBe(false);
    assertFolds(draft);
  });

  it('of another generation as one that is cancelled, of none not at all, and detached never', () => {
    const orphan = draftIn('queued', 'skip', LINK);
    orphan.parent = { ...parentIn('queued'), generationId: 'parent-2' };
    expect(followParent(orphan)).toBe(true);
    expect(orphan.record.status).toBe('cancelled');
    const lost = draftIn('queued', 'skip', LINK);
    lost.parent = null;
    expect(followParent(lost)).toBe(false);
    const detached = draftIn('queued', 'skip', { ...LINK, attached: false });
    detached.parent = parentIn('failed');
    expect(followParent(detached)).toBe(false);
    expect(judge(detached, claim()).kind).toBe('applied');
  });
});

describe('a child lives under', () => {
  it.each(TASK_STATUSES)('a parent that is %s only if that is live', (status) => {
    const refusal = familyRefusal(LINK, parentIn(status));
    expect(refusal?.reason ?? null).toBe(isTerminal(status) ? 'PARENT_CONSTRAINT' : null);
    const draft = draftIn('queued', 'skip', LINK);
    draft.parent = parentIn(status);
    expect(judge(draft, claim()).kind).toBe(isTerminal(status) ? 'refused' : 'applied');
  });

  it('no parent that is fenced, of another generation, or not to be found', () => {
    expect(familyRefusal(LINK, parentIn('running', true))?.reason).toBe('PARENT_CONSTRAINT');
    expect(familyRefusal({ ...LINK, generationId: 'x' }, parentIn('running'))?.reason).toBe('PARENT_CONSTRAINT');
    expect(familyRefusal(LINK, null)?.metadata).toEqual({
      parent_task_id: 'parent',
      parent_status: 'unknown',
      parent_generation_id: '',
    });
  });
});

describe('a parent with live children', () => {
  const resume: Intent = {
    kind: 'resume',
    newGenerationId: null,
    spareGenerationId: 'g2',
    inputJson: null,
    cause: OPERATOR,
  };
  it('neither completes nor begins anew, and may end otherwise', () => {
    const running = draftIn('running');
    running.liveChildren = 2;
    const verdict = judge(running, settle('completed', { lease: HELD }));
    expect(verdict).toMatchObject({ refusal: { reason: 'CHILDREN_ACTIVE', metadata: { children: '2' } } });
    expect(judge(running, settle('failed', { lease: HELD })).kind).toBe('applied');
    const over = draftIn('failed');
    over.liveChildren = 1;
    expect(judge(over, resume)).toMatchObject({ refusal: { reason: 'CHILDREN_ACTIVE' } });
    over.liveChildren = 0;
    expect(judge(over, resume).kind).toBe('applied');
  });

  it('notes the first of each kind of follower, without a revision, until it begins anew', () => {
    const draft = draftIn('queued');
    const { revision } = draft.record;
    expect([noteFollower(draft, 'child', PRODUCER), noteFollower(draft, 'child', PRODUCER)]).toEqual([true, false]);
    expect(noteFollower(draft, 'waiter', PRODUCER)).toBe(true);
    expect(draft.record).toMatchObject({ hasChildren: true, hasWaiters: true, revision });
    judge(draft, settle('failed'));
    judge(draft, resume);
    expect(draft.record).toMatchObject({ hasChildren: false, hasWaiters: false, generation: 2 });
    assertFolds(draft);
  });
});

describe('a dependency', () => {
  it('is satisfied by completion, or by any end', () => {
    for (const status of TASK_STATUSES) {
      if (!isTerminal(status)) continue;
      expect(satisfies(status, 'succeeded')).toBe(status === 'completed');
      expect(satisfies(status, 'terminal')).toBe(true);
    }
  });

  it('counts until the last: then its waiter is queued, from now or from when it may start', () => {
    const draft = draftIn('waiting_dependency');
    dependencySatisfied(draft, UPSTREAM, 1);
    expect(draft.record.status).toBe('waiting_dependency');
    dependencySatisfied(draft, UPSTREAM, 0);
    expect(draft.record).toMatchObject({ status: 'queued', openDependencies: false, queuedAt: T0, revision: 3 });
    dependencySatisfied(draft, UPSTREAM, 0);
    expect(draft.record.revision).toBe(3);
    const delayed = Draft.admit(admission(), 'g1', T0 + 500, PRODUCER);
    holdForDependencies(delayed, 1, PRODUCER);
    const later = Draft.of(delayed.record, T0 + 100);
    dependencySatisfied(later, UPSTREAM, 0);
    expect(later.record).toMatchObject({ queuedAt: T0 + 500, notBeforeAt: T0 + 500 });
    const late = Draft.of(delayed.record, T0 + 600);
    dependencySatisfied(late, UPSTREAM, 0);
    expect(late.record).toMatchObject({ queuedAt: T0 + 600, notBeforeAt: null });
    assertFolds(draft);
  });

  const fates: readonly (readonly [OnUnsatisfied, TaskStatus, TaskStatus, string])[] = [
    ['skip', 'waiting_dependency', 'skipped', 'run.skipped.dependency'],
    ['fail', 'waiting_dependency', 'failed', 'run.failed.dependency'],
    ['cancel', 'waiting_dependency', 'cancelled', 'run.cancelled.dependency'],
    ['skip', 'queued', 'skipped', 'run.skipped.dependency'],
    ['fail', 'queued', 'failed', 'run.failed.dependency'],
    ['cancel', 'queued', 'cancelled', 'run.cancelled.dependency'],
    ['skip', 'suspended', 'cancelled', 'run.cancelled.dependency'],
    ['fail', 'suspended', 'failed', 'run.failed.dependency'],
    ['cancel', 'suspended', 'cancelled', 'run.cancelled.dependency'],
  ];
  it.each(fates)('that is impossible, with %s: from %s to %s', (policy, from, to, code) => {
    const draft = draftIn(from, policy);
    dependencyImpossible(draft, UPSTREAM);
    expect(draft.record).toMatchObject({ status: to, openDependencies: false, ownerStopped: true, reason: { code } });
    expect(draft.events.at(-1)?.cause.actor).toEqual({ type: 'dependency', id: 'upstream' });
    const ended = draft.record;
    dependencyImpossible(draft, { ...UPSTREAM, taskId: 'another' });
    expect(draft.record).toBe(ended);
    assertFolds(draft);
  });

  it('that is open sends its waiter back to waiting when it is resumed', () => {
    const draft = draftIn('waiting_dependency');
    judge(draft, SUSPEND);
    const resume: Intent = {
      kind: 'resume',
      newGenerationId: null,
      spareGenerationId: 'x',
      inputJson: null,
      cause: OPERATOR,
    };
    judge(draft, resume);
    expect(draft.record.status).toBe('waiting_dependency');
    judge(draft, SUSPEND);
    dependencySatisfied(draft, UPSTREAM, 0);
    expect(draft.record).toMatchObject({ status: 'suspended', openDependencies: false });
    judge(draft, resume);
    expect(draft.record.status).toBe('queued');
    assertFolds(draft);
  });
});
