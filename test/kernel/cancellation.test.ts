// Cancellation in two phases (lifecycle.md section 6): request, receipts, both policies, grace, and the truth about
// the owner.

import { describe, expect, it } from 'vitest';
import type { CancellationPolicy } from '../../src/kernel/admission/policy.js';
import { decide, judge } from '../../src/kernel/decide.js';
import type { AuthoritativeEvent } from '../../src/kernel/intent.js';
import { recordIn } from './decide-states.js';
import {
  OPERATOR,
  PRODUCER,
  SAYINGS,
  STRANGER,
  T0,
  TaskWorld,
  WORKER,
  cause,
  claim,
  failure,
  settle,
} from './task-world.js';

function running(cancellationPolicy: CancellationPolicy = 'COOPERATIVE'): TaskWorld {
  return TaskWorld.admit({ cancellationPolicy, retry: { initialMs: 0 } })
    .claim()
    .say('accepted', 'started');
}

describe('a request on what is not running', () => {
  it.each(['queued', 'queued_delayed', 'waiting_dependency', 'retry_wait', 'suspended_by_holder'] as const)(
    '%s: request and settlement are two facts of one commit',
    (state) => {
      const record = recordIn(state);
      const decision = decide(record, { kind: 'request_cancellation', graceMs: 5_000, cause: PRODUCER }, T0 + 99_000);
      if (decision.kind !== 'applied') throw new Error(decision.kind);
      const [request, settlement] = decision.events;
      expect(decision.events).toHaveLength(2);
      expect(request).toMatchObject({
        type: 'task.cancel.requested',
        revision: record.revision + 1,
        from: null,
        to: null,
      });
      expect(settlement).toMatchObject({ type: 'task.cancelled', revision: record.revision + 2, from: record.status });
      expect(decision.record).toMatchObject({
        status: 'cancelled',
        retryAt: null,
        notBeforeAt: null,
        reason: { code: 'run.cancelled.requested' },
        cancellation: { requestedAt: T0 + 99_000, requestedBy: PRODUCER.actor, graceEndsAt: null },
      });
      expect(decide(decision.record, claim(), T0 + 99_001)).toMatchObject({
        refusal: { reason: 'TERMINAL_GENERATION' },
      });
    },
  );
});

describe('a request on what runs', () => {
  it('is one fact; it keeps running, and the fact is named by the record', () => {
    const world = running().at(T0 + 10);
    const { revision, lastEvent } = world.record;
    world.requestCancel(7_000);
    expect(world.eventTypes).toEqual(['task.cancel.requested']);
    expect(world.record).toMatchObject({
      status: 'running',
      cancellation: {
        requestedAt: T0 + 10,
        requestedBy: PRODUCER.actor,
        principal: 'tester',
        eventNumber: lastEvent + 1,
        revision: revision + 1,
        graceEndsAt: T0 + 10 + 7_000,
        deliveredAt: null,
        acknowledgedAt: null,
      },
    });
  });

  it.each([
    ['no grace', 7_000, null],
    ['a later end', 7_000, 7_001],
    ['the same end', 7_000, 7_000],
  ])('a second one with %s changes nothing', (_what, first, second) => {
    const world = running().requestCancel(first);
    const before = structuredClone(world.record);
    const again = { kind: 'request_cancellation', graceMs: second, cause: OPERATOR } as const;
    expect(judge(world.draft, again).kind).toBe('unchanged');
    expect(world.record).toEqual(before);
  });

  it.each<[string, number | null, number]>([
    ['a first grace', null, 7_000],
    ['a shorter one', 7_000, 10],
    ['none at all to wait', 7_000, 0],
  ])('a second one with %s brings the end nearer, and is no second fact', (_what, first, second) => {
    const world = running().requestCancel(first);
    const { revision } = world.record;
    world.at(T0 + 50).apply({ kind: 'request_cancellation', graceMs: second, cause: OPERATOR });
    expect(world.eventTypes).toEqual(['reeve.task.cancel_hastened']);
    expect(world.record).toMatchObject({
      status: 'running',
      revision,
      cancellation: { requestedBy: PRODUCER.actor, graceEndsAt: T0 + 50 + second },
    });
    world.at(T0 + 50 + second).tick();
    expect(world.record).toMatchObject({ status: 'cancelled', reason: { code: 'run.cancelled.grace_expired' } });
  });

  it('receipts are events without a revision, each recorded once', () => {
    const world = running()
      .requestCancel()
      .at(T0 + 20);
    const { revision } = world.record;
    const receipt = (acknowledged: boolean) =>
      ({ kind: 'receipt', lease: world.proof(), acknowledged, cause: WORKER }) as const;
    world.apply(receipt(false));
    expect(judge(world.draft, receipt(false)).kind).toBe('unchanged');
    world.at(T0 + 30).apply(receipt(true));
    expect(judge(world.draft, receipt(true)).kind).toBe('unchanged');
    expect(judge(world.draft, receipt(false)).kind).toBe('unchanged');
    expect(world.record).toMatchObject({
      status: 'running',
      revision,
      cancellation: { deliveredAt: T0 + 20, acknowledgedAt: T0 + 30 },
    });
  });

  it('an acknowledgement implies the delivery', () => {
    const world = running()
      .requestCancel()
      .at(T0 + 20);
    world.apply({ kind: 'receipt', lease: world.proof(), acknowledged: true, cause: WORKER });
    expect(world.eventTypes).toEqual(['reeve.task.cancel_delivered', 'reeve.task.cancel_acknowledged']);
    expect(world.record.cancellation).toMatchObject({ deliveredAt: T0 + 20, acknowledgedAt: T0 + 20 });
  });

  it('is gone with its generation', () => {
    const world = running().requestCancel().say('cancelled');
    world.apply({ kind: 'resume', newGenerationId: null, spareGenerationId: 'g2', inputJson: null, cause: OPERATOR });
    expect(world.record).toMatchObject({ status: 'queued', cancellation: null, ownerStopped: true });
    world.claim().say('accepted', 'started', 'failed');
    expect(world.record.status).toBe('retry_wait');
  });
});

describe('completion under FENCED', () => {
  const proved = (proof: AuthoritativeEvent | null): string => {
    const world = running('FENCED')
      .requestCancel()
      .at(T0 + 50);
    const intent = settle('completed', { lease: world.proof(), cause: WORKER, authoritativeEvent: proof });
    const verdict = judge(world.draft, intent);
    if (verdict.kind === 'refused') expect(world.draft.events).toEqual([]);
    return verdict.kind === 'refused' ? verdict.refusal.reason : world.record.status;
  };
  const requestNumber = running('FENCED').requestCancel().record.cancellation?.eventNumber ?? 0;

  it('takes an event of this generation with a number below the request’s, and nothing else', () => {
    expect(requestNumber).toBe(5);
    const at = T0 + 3;
    expect(proved({ number: requestNumber - 1, generation: 1, at })).toBe('completed');
    expect(proved({ number: 1, generation: 1, at })).toBe('completed');
    expect(proved({ number: requestNumber, generation: 1, at })).toBe('CANCELLATION_FENCED');
    expect(proved({ number: requestNumber + 1, generation: 1, at })).toBe('CANCELLATION_FENCED');
    expect(proved({ number: 1, generation: 2, at })).toBe('CANCELLATION_FENCED');
    expect(proved(null)).toBe('CANCELLATION_FENCED');
  });

  it('takes the proof’s time as authoritative', () => {
    const world = running('FENCED')
      .requestCancel()
      .at(T0 + 50);
    const authoritativeEvent = { number: 4, generation: 1, at: T0 + 3 };
    world.apply(settle('completed', { lease: world.proof(), cause: WORKER, authoritativeEvent }));
    expect(world.draft.events.at(-1)?.cause.authoritativeAt).toBe(T0 + 3);
  });

  it('names the request in its refusal', () => {
    const world = running('FENCED').requestCancel();
    const { answer } = world.hear('completed');
    expect(answer.refused[0]?.refusal.metadata).toEqual({ task_id: 'order-17', requested_event: 'order-17~e5' });
  });

  it('without a request needs no proof', () => {
    expect(running('FENCED').say('completed').record.status).toBe('completed');
  });
});

describe('what ends an attempt under a pending request', () => {
  it.each<[string, (world: TaskWorld) => TaskWorld, string, string, boolean]>([
    [
      'its session is lost',
      (world) => world.apply({ kind: 'session_lost', sessionId: 'session-a', cause: cause('reaper') }),
      'cancelled',
      'run.cancelled.owner_lost',
      false,
    ],
    ['its claim is forgotten', (world) => world.handBack('forgotten'), 'cancelled', 'run.cancelled.owner_lost', false],
    ['it fails and could be retried', (world) => world.say('failed'), 'cancelled', 'run.cancelled.attempt_ended', true],
    [
      'it is released',
      (world) => world.apply({ kind: 'release', lease: world.proof(), checkpointJson: null, cause: WORKER }),
      'cancelled',
      'run.cancelled.attempt_ended',
      true,
    ],
    ['it says cancelled', (world) => world.say('cancelled'), 'cancelled', 'run.cancelled.acknowledged', true],
    ['it completes', (world) => world.say('completed'), 'completed', 'run.completed.worker', true],
    ['it times out', (world) => world.say('timed_out'), 'timed_out', 'run.timed_out.worker', true],
    [
      'it fails for good',
      (world) => world.say({ ...SAYINGS.failed, ending: failure('x', false) }),
      'failed',
      'run.failed.not_retryable',
      true,
    ],
  ])('COOPERATIVE: %s', (_name, end, status, code, ownerStopped) => {
    const { record } = end(running().requestCancel());
    expect(record).toMatchObject({ status, reason: { code }, ownerStopped });
  });

  it('the last attempt included: nothing is retried, nothing failed for its number', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 1 } })
      .claim()
      .say('accepted')
      .requestCancel();
    expect(world.fork(T0).say('failed').record.status).toBe('cancelled');
    world.apply({ kind: 'session_lost', sessionId: 'session-a', cause: cause('reaper') });
    expect(world.record.status).toBe('cancelled');
  });

  it('an undelivered tenth claim included', () => {
    const record = recordIn('running_tenth_delivery');
    const world = TaskWorld.of(record, record.updatedAt).requestCancel().handBack();
    expect(world.record).toMatchObject({ status: 'cancelled', reason: { code: 'run.cancelled.owner_lost' } });
  });
});

describe('the grace', () => {
  it('revokes the lease when it passes', () => {
    const world = running()
      .requestCancel(5_000)
      .at(T0 + 5_000)
      .tick();
    expect(world.record).toMatchObject({
      status: 'cancelled',
      lease: null,
      reason: { code: 'run.cancelled.grace_expired' },
      ownerStopped: false,
      endedLease: { epoch: 1 },
    });
  });

  it('of no length at all is due at once', () => {
    expect(running().requestCancel(0).tick().record.status).toBe('cancelled');
  });

  it('that was not given never passes', () => {
    const world = running().requestCancel();
    const verdict = judge(world.fork(T0 + 10 ** 12).draft, { kind: 'tick', quietSince: 0, chance: 0.5 });
    expect(verdict.kind).toBe('unchanged');
  });
});

describe('an owner that cancels unasked', () => {
  it('commits request and settlement together, in its own name', () => {
    const world = running()
      .at(T0 + 9)
      .say('cancelled');
    expect(world.eventTypes).toEqual(['task.cancel.requested', 'task.cancelled']);
    expect(world.record).toMatchObject({
      status: 'cancelled',
      cancellation: { requestedBy: WORKER.actor },
      reason: { code: 'run.cancelled.unasked' },
      ownerStopped: true,
    });
    expect(world.draft.events.map((event) => event.workerSeq)).toEqual([null, 3]);
  });
});

describe('owner_stopped of a cancelled task', () => {
  const lost = { kind: 'session_lost', sessionId: 'session-a', cause: cause('reaper') } as const;
  const hold = { kind: 'suspend', lease: null, cause: OPERATOR } as const;
  const release = (world: TaskWorld) =>
    ({ kind: 'release', lease: world.proof(), checkpointJson: null, cause: WORKER }) as const;

  it.each<[string, boolean, () => TaskWorld]>([
    ['never claimed', true, () => TaskWorld.admit()],
    ['held before it was claimed', true, () => TaskWorld.admit().apply(hold)],
    ['its last owner failed', true, () => running().say('failed')],
    ['its last owner suspended', true, () => running().say('suspended')],
    [
      'its last owner released',
      true,
      () => {
        const world = running();
        return world.apply(release(world));
      },
    ],
    ['its last owner was lost', false, () => running().apply(lost)],
    ['its claim was not delivered', false, () => TaskWorld.admit().claim().handBack()],
    ['an operator held it while it ran', false, () => running().apply(hold)],
    [
      'its attempt timed out',
      false,
      () =>
        TaskWorld.admit({ attemptTimeoutMs: 9 })
          .claim()
          .say('accepted')
          .at(T0 + 9)
          .tick(),
    ],
    [
      'it was held while it ran, and put back',
      false,
      () =>
        running()
          .apply(hold)
          .apply({ kind: 'resume', newGenerationId: null, spareGenerationId: 's', inputJson: null, cause: OPERATOR }),
    ],
    [
      'an owner was lost and the next one failed',
      true,
      () => running().apply(lost).claim({ sessionId: STRANGER }).say('failed'),
    ],
    [
      'an owner failed and the next one was lost',
      false,
      () => running().say('failed').tick().claim().say('accepted').apply(lost),
    ],
  ])('%s: %s', (_name, stopped, build) => {
    const world = build().requestCancel();
    expect(world.record).toMatchObject({ status: 'cancelled', ownerStopped: stopped });
    expect(world.draft.events.at(-1)).toMatchObject({ type: 'task.cancelled', data: { ownerStopped: stopped } });
  });
});
