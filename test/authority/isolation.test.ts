// One work that fails harms no other: a damaged record, a defect inside a work, a callback that throws. And whatever
// waits is bounded (promise C10), and answered before the service stops.

import { describe, expect, it } from 'vitest';
import { IntentWork } from '../../src/authority/intent-work.js';
import { Committer } from '../../src/authority/committer.js';
import { MAX_BATCH_BYTES, MAX_WAITING_BYTES, MAX_WAITING_WORKS } from '../../src/authority/waiting-works.js';
import { PLAIN_RULES } from '../../src/authority/placement-index.js';
import { Publisher } from '../../src/authority/publisher.js';
import { RecordCache } from '../../src/authority/record-cache.js';
import type { SubmitAnswer } from '../../src/authority/submit-work.js';
import { RecordUnit } from '../../src/authority/unit.js';
import { MAX_JUDGEMENTS, type Work } from '../../src/authority/work.js';
import { judge } from '../../src/kernel/decide.js';
import type { Refusal } from '../../src/kernel/refusal.js';
import type { RecordWrite } from '../../src/store/commit-plan.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { endOf } from '../contract/sample-plans.js';
import { ManualClock } from '../support/manual-clock.js';
import { causeOf, submission } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { turns, until } from '../support/turns.js';
import { World } from '../support/world.js';

describe('a damaged record', () => {
  it('refuses everything about its own task and nothing else', async () => {
    const world = await World.open({ cacheBytes: 0, dispatcher: null });
    const damaged = await world.admit('damaged');
    const sound = await world.admit('sound');
    world.probe.damaged.add(damaged.admission.taskId);
    const answers = await Promise.all([
      world.cancel(damaged.admission.taskId),
      world.cancel(sound.admission.taskId),
      world.submit('new'),
    ]);
    expect(answers[0]).toMatchObject({ kind: 'refused', refusal: { reason: 'RECORD_DAMAGED' } });
    expect(answers[1].kind).toBe('applied');
    expect(answers[2].kind).toBe('created');
    expect(await world.authority.reads.get(damaged.admission.taskId)).toMatchObject({
      ok: false,
      refusal: { reason: 'RECORD_DAMAGED', metadata: { task_id: damaged.admission.taskId } },
    });
    expect(await world.submit('damaged')).toMatchObject({ kind: 'refused', refusal: { reason: 'RECORD_DAMAGED' } });
    // Told once, however many have met it.
    expect(world.defects).toEqual([
      expect.objectContaining({ failure: 'damaged', message: `task ${damaged.admission.taskId}: told to be` }),
    ]);
  });
});

describe('a record that leaves the cache', () => {
  it('between the moment it is needed and the moment it is judged is still there for its batch', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped', cacheBytes: 3_000 });
    const other = await world.admit('other');
    const { admission } = await world.admit('k');
    const real = world.real.findLedgerEntry.bind(world.real);
    world.real.findLedgerEntry = (...args) => {
      const read = world.authority.beginRead();
      read.keep(other);
      read.end();
      return real(...args);
    };
    const answer = await world.apply({
      taskId: admission.taskId,
      key: { key: 'op', contentHash: 'sha256:00' },
      intent: { kind: 'suspend', lease: null, cause: causeOf('operator') },
    });
    expect(answer).toMatchObject({ kind: 'applied' });
  });
});

describe('a unit', () => {
  it('rests on every attachment of a session that its decisions saw, the stricter need of each', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const unit = RecordUnit.changing(await world.admit('k'), world.clock.nowMs());
    judge(unit.draft, { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') });
    unit.reads({ sessionId: 's', attachment: 1, needs: 'not_gone' });
    unit.reads({ sessionId: 's', attachment: 2, needs: 'live' });
    unit.reads({ sessionId: 's', attachment: 2, needs: 'not_gone' });
    expect(unit.plan(PLAIN_RULES)?.sessionReads).toEqual([
      { sessionId: 's', attachment: 1, needs: 'not_gone' },
      { sessionId: 's', attachment: 2, needs: 'live' },
    ]);
  });
});

describe('a defect', () => {
  function committer(store: TaskStore = openMemoryStore()) {
    const defects: unknown[] = [];
    const fatals: unknown[] = [];
    let ids = 0;
    const made = new Committer({
      store,
      clock: new ManualClock(),
      cache: new RecordCache(1_000_000),
      publisher: new Publisher((error) => defects.push(error)),
      newBatchId: () => `batch-${String(++ids)}`,
      rules: PLAIN_RULES,
      acceptTimeoutMs: 5_000,
      onFatal: (error) => fatals.push(error),
      onDefect: (error) => defects.push(error),
      onOutage: () => undefined,
    });
    return { made, defects, fatals };
  }

  /** A work that only says what became of it, and breaks where it is told to. */
  class Hostile implements Work {
    readonly weightBytes = 1;
    readonly told: string[] = [];

    constructor(
      readonly taskId: string | null,
      private readonly breaksIn: 'judge' | 'prefetch' | 'answer' | 'refuse' | null,
    ) {}

    readonly prefetch = async (): Promise<void> => this.breakIn('prefetch');

    judge(batch: Parameters<Work['judge']>[0]): void {
      batch.writeSession({ kind: 'expire', sessionId: 'nobody', end: endOf(0) }).answer(this, () => undefined);
      this.breakIn('judge');
    }

    lost(): 'answered' {
      this.breakIn('answer');
      this.told.push('lost');
      return 'answered';
    }

    refuse(refusal: Refusal): void {
      this.told.push(refusal.reason);
      this.breakIn('refuse');
    }

    private breakIn(where: string): void {
      if (this.breaksIn === where) throw new Error(`broke in ${where}`);
    }
  }

  it.each(['judge', 'prefetch', 'answer'] as const)(
    'in %s of one work leaves the others to their end',
    async (where) => {
      const { made, defects, fatals } = committer();
      const works = [new Hostile(null, null), new Hostile(null, where), new Hostile(null, null)];
      for (const work of works) made.enqueue(work);
      await turns();
      expect(works.map(({ told }) => told[0])).toEqual(['lost', where === 'answer' ? undefined : 'INTERNAL', 'lost']);
      expect(defects).toMatchObject([{ message: `broke in ${where}` }]);
      expect(fatals).toEqual([]);
      const later = new Hostile(null, null);
      made.enqueue(later);
      await turns();
      expect(later.told).toEqual(['lost']);
    },
  );

  it('that spoils its unit again and again does not keep the others of that unit waiting for ever', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const { admission } = await world.admit('k');
    const { taskId } = admission;
    const findLedgerEntry = () => Promise.resolve(null);
    const answers: unknown[] = [];
    const { made, defects } = committer(world.real);
    const cancel = { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') } as const;
    made.enqueue(new IntentWork({ taskId, intent: cancel }, findLedgerEntry, (answer) => answers.push(answer)));
    // Each batch has a work that breaks, behind the one that was put back.
    class Spoiler extends Hostile {
      override refuse(refusal: Refusal): void {
        super.refuse(refusal);
        if (answers.length > 0 || defects.length > 100) return;
        queueMicrotask(() => made.enqueue(new Spoiler(taskId, 'judge')));
      }
    }
    made.enqueue(new Spoiler(taskId, 'judge'));
    await until(() => answers.length > 0, 'an answer');
    expect(answers).toMatchObject([{ kind: 'refused', refusal: { reason: 'CONTENTION' } }]);
    expect(defects.length).toBeLessThanOrEqual(MAX_JUDGEMENTS + 1);
  });

  it('in being refused does not keep the refusal from the others', async () => {
    const { made, defects } = committer();
    const works = [new Hostile(null, 'judge'), new Hostile(null, 'refuse'), new Hostile(null, null)];
    await made.stop();
    for (const work of works) made.enqueue(work);
    expect(works.map(({ told }) => told)).toEqual([['DRAINING'], ['DRAINING'], ['DRAINING']]);
    expect(defects).toHaveLength(1);
  });

  it('in a callback is reported, called once, and the rest of its batch is answered', async () => {
    const world = await World.open({ dispatcher: null });
    let calls = 0;
    world.authority.submit(submission('hostile'), () => {
      calls += 1;
      throw new Error('a caller broke');
    });
    const others = await Promise.all([world.submit('a'), world.submit('hostile'), world.submit('b')]);
    expect(others.map(({ kind }) => kind)).toEqual(['created', 'replayed', 'created']);
    expect([calls, world.defects.length, world.fatals.length]).toEqual([1, 1, 0]);
  });

  it('in a callback that is answered while it is judged neither', async () => {
    const world = await World.open();
    let calls = 0;
    const report = {
      sessionId: 's',
      generation: 1,
      epoch: 1,
      answeredThrough: 0,
      events: [],
      chance: 0,
      cause: (await world.admit('k')).admission.actor as never,
    };
    world.authority.report({ taskId: 'unknown', report, attachment: null, weightBytes: 1 }, () => {
      calls += 1;
      throw new Error('a caller broke');
    });
    await world.settle();
    expect([calls, world.defects.length]).toEqual([1, 1]);
  });
});

describe('what waits', () => {
  it('is bounded in number: beyond it OVERLOADED with a delay, and what was taken is committed', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const held = world.probe.hold();
    const first = world.submit('first');
    await held;
    const counts = { created: 0, refused: 0, replayed: 0, purged: 0 };
    const one = submission('one');
    const count = ({ kind }: SubmitAnswer): void => void (counts[kind] += 1);
    for (let n = 0; n < MAX_WAITING_WORKS; n++)
      world.authority.submit({ ...one, idempotencyKey: `k${String(n)}` }, count);
    const over = await world.submit('over');
    expect(over).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'OVERLOADED', metadata: { retry_after_ms: '250' } },
    });
    expect(counts).toEqual({ created: 0, refused: 0, replayed: 0, purged: 0 });
    world.probe.release();
    await first;
    await world.authority.stop();
    expect(counts).toEqual({ created: MAX_WAITING_WORKS, refused: 0, replayed: 0, purged: 0 });
  });

  it('goes in batches that are bounded in bytes, and a sign of life goes with the next of them', async () => {
    const world = await World.open({ timers: 'stopped' });
    const worker = await openWorker(world);
    const held = world.probe.hold();
    void world.submit('first');
    await held;
    const big = submission('big', { queue: 'nobody', args: JSON.stringify({ text: 'x'.repeat(1_000_000) }) });
    for (let n = 0; n < 40; n++) {
      world.authority.submit({ ...big, idempotencyKey: `k${String(n)}` }, () => undefined);
    }
    const renewal = worker.heartbeat();
    await world.clock.advance(200);
    const before = world.probe.batches.length;
    world.probe.release();
    expect(await renewal).toBe('renewed');
    await world.authority.stop();
    const batches = world.probe.batches.slice(before + 1);
    const weights = batches.map(({ plans }) =>
      plans.flatMap(({ records }) => records).reduce((sum, write) => sum + argsOf(write), 0),
    );
    expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeGreaterThan(40_000_000);
    expect(Math.max(...weights)).toBeLessThanOrEqual(MAX_BATCH_BYTES);
    expect(batches[0]?.plans.some(({ sessions }) => sessions[0]?.kind === 'renew')).toBe(true);
  });

  it('is bounded in bytes', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const held = world.probe.hold();
    void world.submit('first');
    await held;
    const big = submission('big', { args: JSON.stringify({ text: 'x'.repeat(1_000_000) }) });
    const answers: string[] = [];
    const fits = Math.floor(MAX_WAITING_BYTES / 1_001_040);
    for (let n = 0; n < fits + 3; n++) {
      world.authority.submit({ ...big, idempotencyKey: `k${String(n)}` }, (answer) =>
        answers.push(answer.kind === 'refused' ? answer.refusal.reason : answer.kind),
      );
    }
    expect(answers).toEqual(['OVERLOADED', 'OVERLOADED', 'OVERLOADED']);
    world.probe.release();
    await world.authority.stop();
    expect(answers.filter((answer) => answer === 'created')).toHaveLength(fits);
  });

  it('never costs a living worker its lease: sessions are renewed when the queue is full', async () => {
    const world = await World.open({ timers: 'stopped' });
    const worker = await openWorker(world);
    const held = world.probe.hold();
    void world.submit('first');
    await held;
    const one = submission('one');
    for (let n = 0; n < MAX_WAITING_WORKS; n++)
      world.authority.submit({ ...one, idempotencyKey: `k${String(n)}` }, () => undefined);
    const renewal = worker.heartbeat();
    await world.clock.advance(200);
    world.probe.release();
    expect(await renewal).toBe('renewed');
  });
});

describe('stop', () => {
  it('refuses what is new, and resolves when all that was taken is committed and answered', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const held = world.probe.hold();
    const answers: string[] = [];
    const note = ({ kind }: SubmitAnswer): void => void answers.push(kind);
    world.authority.submit(submission('a'), note);
    await held;
    for (const key of ['b', 'c']) world.authority.submit(submission(key), note);
    let stopped = false;
    const stopping = world.authority.stop().then(() => (stopped = true));
    expect(await world.submit('late')).toMatchObject({ kind: 'refused', refusal: { reason: 'DRAINING' } });
    await world.settle();
    expect(stopped).toBe(false);
    world.probe.release();
    await stopping;
    expect(answers).toEqual(['created', 'created', 'created']);
  });

  it('waits for a replay whose task is still being read', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped', cacheBytes: 0 });
    await world.admit('k');
    const answers: string[] = [];
    const real = world.real.loadTasks.bind(world.real);
    world.real.loadTasks = async (taskIds) => {
      await world.settle();
      return real(taskIds);
    };
    world.authority.submit(submission('k'), ({ kind }) => answers.push(kind));
    await world.authority.stop();
    expect(answers).toEqual(['replayed']);
  });

  it('with nothing under way is at once', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    await world.authority.stop();
    await world.authority.stop();
    expect(await world.cancel('unknown')).toMatchObject({ refusal: { reason: 'DRAINING' } });
  });
});

function argsOf(write: RecordWrite): number {
  return write.kind === 'insert' ? write.admission.application.argsJson.length : 0;
}
