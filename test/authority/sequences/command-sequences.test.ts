// The same random commands to the model and to the authority on memory and on SQLite: the same answers, the same
// standing of every task after each of them, and on both stores the same records and histories to the letter.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IntentAnswer } from '../../../src/authority/intent-work.js';
import type { Intent, WorkerSaying } from '../../../src/kernel/intent.js';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../../contract/engines.js';
import { causeOf } from '../../support/submissions.js';
import { failure } from '../../support/test-worker.js';
import { World } from '../../support/world.js';
import { cancel, hold, resume, settle, skip } from '../edges/situations.js';
import { ContractModel, MAX_ATTEMPTS, RETRY_MS, type ModelShape, type Said } from './contract-model.js';

const ALONE = { dispatcher: null, timers: 'stopped', propagation: 'stopped', seed: 72 } as const;

/** A plain task, its attached and its detached child, and one that waits for the first two ends. */
const SHAPES: ReadonlyMap<string, ModelShape> = new Map([
  ['plain', { parent: null, dependsOn: [] }],
  ['child', { parent: { id: 'plain', attached: true }, dependsOn: [] }],
  ['detached', { parent: { id: 'plain', attached: false }, dependsOn: [] }],
  [
    'waiter',
    {
      parent: null,
      dependsOn: [
        { id: 'child', succeeded: true },
        { id: 'detached', succeeded: false },
      ],
    },
  ],
]);
const SESSIONS = ['A', 'B'] as const;
const SAID: readonly Said[] = [
  ...(['accepted', 'started', 'progress', 'blocked', 'completed', 'failed', 'failed'] as const),
  ...(['failed', 'failed for good', 'cancelled', 'suspended'] as const),
];

/** Most happens to the family: what little is drawn for each task must meet. */
const task = fc.constantFrom('plain', 'plain', 'child', 'child', 'detached', 'waiter');
const session = fc.constantFrom(...SESSIONS);
/** Words and leases of the claim in force, or of the one before it. */
const stale = fc.constantFrom(false, false, false, true);

const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('submit'), task }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('claim'), task, session }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('work'), task }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('say'), task, stale, said: fc.constantFrom(...SAID) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('hold', 'skip', 'tick'), task }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel'), task }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('resume'), task, anew: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('completed', 'failed', 'timed_out'), task }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lost'), task, session }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('hand back', 'release'), task, stale }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), task }) },
);
type Command = typeof command extends fc.Arbitrary<infer Value> ? Value : never;

interface Claim {
  readonly session: string;
  readonly generation: number;
  readonly epoch: number;
  answered: number;
}

/** One side of the comparison that is real; names of tasks carry the run, so that a store serves many. */
class Side {
  private parentGeneration = '';

  constructor(
    readonly world: World,
    private readonly run: string,
    private readonly fenced: boolean,
  ) {}

  idOf(name: string): string {
    return `${this.run}-${name}`;
  }

  async submit(name: string): Promise<string> {
    const { parent, dependsOn } = SHAPES.get(name) ?? { parent: null, dependsOn: [] };
    const generationId = this.parentGeneration === '' ? 'nobody' : this.parentGeneration;
    const policy = {
      cancellationPolicy: this.fenced ? 'FENCED' : 'COOPERATIVE',
      retry: { maxAttempts: MAX_ATTEMPTS, initialMs: RETRY_MS },
      parent: parent && { taskId: this.idOf(parent.id), generationId, attached: parent.attached },
      dependsOn: dependsOn.map(({ id, succeeded }) => ({
        taskId: this.idOf(id),
        condition: succeeded ? ('succeeded' as const) : ('terminal' as const),
      })),
    } as const;
    const answer = await this.world.submit(this.idOf(name), { taskId: this.idOf(name), policy });
    if (answer.kind === 'created' && name === 'plain') this.parentGeneration = answer.record.generationId;
    return answer.kind === 'refused' ? answer.refusal.reason : answer.kind;
  }

  async apply(name: string, intent: Intent): Promise<string> {
    return nameOf(await this.world.apply({ taskId: this.idOf(name), intent }));
  }

  async say(name: string, claim: Claim, saying: WorkerSaying): Promise<{ answer: string; judgedThrough: number }> {
    const { session: sessionId, generation, epoch, answered } = claim;
    const events = [{ seq: answered + 1, saying }];
    const cause = causeOf('worker');
    const report = { sessionId, generation, epoch, answeredThrough: answered, events, chance: 0.5, cause };
    const request = { taskId: this.idOf(name), report, attachment: null, weightBytes: 100 };
    return new Promise((resolve) => {
      this.world.authority.report(request, (outcome) => {
        if (outcome.kind === 'refused') return resolve({ answer: outcome.refusal.reason, judgedThrough: answered });
        const { judgedThrough, refused } = outcome;
        resolve({ answer: refused[0]?.refusal.reason ?? 'applied', judgedThrough });
      });
    });
  }

  /** Every record and every event, without what a run calls them. */
  async whole(): Promise<string> {
    const all: unknown[] = [];
    for (const name of SHAPES.keys()) {
      const [found] = await this.world.real.loadTasks([this.idOf(name)]);
      if (found?.kind !== 'task') continue;
      await this.world.assertHistories([this.idOf(name)]);
      all.push(found.record, await this.world.events(this.idOf(name)));
    }
    return JSON.stringify(all);
  }
}

function nameOf(answer: IntentAnswer): string {
  return answer.kind === 'refused' ? answer.refusal.reason : answer.kind;
}

/** The three of them, in step. */
class Comparison {
  readonly model: ContractModel;
  private readonly claims = new Map<string, Claim[]>();
  readonly met = new Set<string>();

  constructor(
    private readonly sides: readonly Side[],
    fenced: boolean,
  ) {
    this.model = new ContractModel(SHAPES, fenced);
  }

  async take(command: Command): Promise<void> {
    const { task: name } = command;
    if (command.kind === 'wait') this.wait();
    if (command.kind !== 'submit' && !this.model.tasks.has(name)) return;
    if (command.kind === 'work') return this.work(name);
    const expected = await this.judge(name, command);
    if (expected !== null) this.met.add(`${command.kind} ${expected}`);
    await this.compare();
  }

  private async judge(name: string, command: Command): Promise<string | null> {
    const { model } = this;
    const claim = this.claimOf(name, 'stale' in command && command.stale);
    switch (command.kind) {
      case 'submit':
        return this.same(model.submit(name), (side) => side.submit(name));
      case 'claim':
        return 'session' in command ? this.claim(name, command.session) : null;
      case 'say':
        return claim !== null && 'said' in command ? this.say(name, claim, command.said) : null;
      case 'hold':
        return this.intent(name, model.hold(name), hold);
      case 'skip':
        return this.intent(name, model.skip(name), skip);
      case 'tick':
      case 'wait':
        return this.intent(name, model.tick(name), { kind: 'tick', quietSince: 0, chance: 0.5 });
      case 'cancel':
        return this.intent(name, model.cancel(name), cancel);
      case 'resume': {
        const anew = 'anew' in command && command.anew;
        const id = `${name} anew ${String(model.tasks.get(name)?.generation)}`;
        return this.intent(name, model.resume(name, anew), {
          ...resume(anew ? id : null),
          spareGenerationId: id,
        } as Intent);
      }
      case 'completed':
      case 'failed':
      case 'timed_out':
        return this.intent(name, model.settle(name, command.kind), settle(command.kind));
      case 'lost': {
        const sessionId = 'session' in command ? command.session : '';
        const intent: Intent = { kind: 'session_lost', sessionId, cause: causeOf('reaper') };
        return this.intent(name, model.sessionLost(name, sessionId), intent);
      }
      case 'hand back': {
        if (claim === null) return null;
        const expected = model.handBack(name, claim.session, claim.epoch);
        const lease = { epoch: claim.epoch, sessionId: claim.session };
        return this.intent(name, expected, { kind: 'hand_back', lease, why: 'undelivered', cause: causeOf('reaper') });
      }
      default: {
        if (claim === null) return null;
        const expected = model.release(name, claim.session, claim.epoch);
        const lease = { epoch: claim.epoch, sessionId: claim.session };
        return this.intent(name, expected, { kind: 'release', lease, checkpointJson: null, cause: causeOf('worker') });
      }
    }
  }

  /** What most of a life is made of, so that sequences get somewhere. */
  private async work(name: string): Promise<void> {
    await this.claim(name, 'A');
    const claim = this.claimOf(name, false);
    if (claim === null) return;
    for (const said of ['accepted', 'started'] as const) await this.say(name, claim, said);
    await this.compare();
  }

  private async claim(name: string, sessionId: string): Promise<string> {
    const claims = { worker: sessionId, sessionTtlMs: 30_000, acceptTimeoutMs: 100_000_000 };
    const expected = await this.intent(name, this.model.claim(name, sessionId), {
      kind: 'claim',
      sessionId,
      ...claims,
      cause: causeOf('worker'),
    });
    const { generation, epoch } = this.model.tasks.get(name) ?? { generation: 0, epoch: 0 };
    if (expected === 'applied') {
      this.claims.set(name, [...(this.claims.get(name) ?? []), { session: sessionId, generation, epoch, answered: 0 }]);
    }
    return expected;
  }

  private async say(name: string, claim: Claim, said: Said): Promise<string> {
    const { session: sessionId, generation, epoch } = claim;
    const expected = this.model.say(name, sessionId, generation, epoch, said);
    // What nobody listens to any more uses up no number; everything else does, refused or not.
    const judgedThrough = claim.answered + (expected === 'LEASE_LOST' ? 0 : 1);
    for (const side of this.sides) {
      expect(await side.say(name, claim, sayingOf(said))).toEqual({ answer: expected, judgedThrough });
    }
    claim.answered = judgedThrough;
    return expected;
  }

  private intent(name: string, expected: string, intent: Intent): Promise<string> {
    return this.same(expected, (side) => side.apply(name, intent));
  }

  private async same(expected: string, ask: (side: Side) => Promise<string>): Promise<string> {
    for (const side of this.sides) expect(await ask(side)).toBe(expected);
    return expected;
  }

  private wait(): void {
    this.model.now += 2 * RETRY_MS;
    for (const { world } of this.sides) world.clock.step(2 * RETRY_MS);
  }

  private claimOf(name: string, before: boolean): Claim | null {
    return this.claims.get(name)?.at(before ? -2 : -1) ?? null;
  }

  private async compare(): Promise<void> {
    for (const side of this.sides) {
      for (const [name, { status, generation, attempt, epoch, asked, owner }] of this.model.tasks) {
        const record = await side.world.stored(side.idOf(name));
        const cancellation = record.cancellation !== null;
        const stands = [record.status, record.generation, record.attempt, record.epoch, cancellation];
        expect([name, ...stands, record.lease?.sessionId ?? null]).toEqual([
          ...[name, status, generation, attempt, epoch, asked],
          owner,
        ]);
      }
    }
  }
}

function sayingOf(said: Said): WorkerSaying {
  switch (said) {
    case 'accepted':
    case 'started':
      return { kind: said };
    case 'progress':
      return { kind: 'progress', progress: 0.5, message: null };
    case 'blocked':
      return { kind: 'blocked', reason: 'an index' };
    case 'completed':
      return { kind: 'completed', resultJson: '{}', ending: null };
    case 'failed':
    case 'failed for good':
      return { kind: 'failed', ending: failure(said === 'failed'), retryAfterMs: null };
    case 'cancelled':
      return { kind: 'cancelled', ending: null, reason: null };
    case 'suspended':
      return { kind: 'suspended', reason: null };
  }
}

const sequences = fc.tuple(fc.array(command, { minLength: 5, maxLength: 60, size: 'max' }), fc.boolean());
let runs = 0;

describe('command sequences', () => {
  it('are answered as the model says on memory; from one seed they meet what they are to meet', async () => {
    const met = new Set<string>();
    await fc.assert(
      fc.asyncProperty(sequences, async ([commands, fenced]) => {
        const world = await World.open(ALONE);
        const comparison = new Comparison([new Side(world, 'run', fenced)], fenced);
        for (const next of commands) await comparison.take(next);
        for (const what of comparison.met) met.add(what);
        expect(world.defects).toEqual([]);
      }),
      { numRuns: 1_000, seed: 72 },
    );
    const expected = [
      ...['submit created', 'submit replayed', 'submit PARENT_CONSTRAINT', 'submit TASK_NOT_FOUND'],
      ...['claim applied', 'claim INVALID_TRANSITION', 'claim TERMINAL_GENERATION'],
      ...['say applied', 'say LEASE_LOST', 'say ILLEGAL_EVENT', 'say CHILDREN_ACTIVE', 'say CANCELLATION_FENCED'],
      ...['cancel applied', 'cancel unchanged', 'cancel TERMINAL_GENERATION', 'hold applied', 'skip applied'],
      ...['resume applied', 'resume INVALID_TRANSITION', 'resume CHILDREN_ACTIVE', 'resume PARENT_CONSTRAINT'],
      ...['wait applied', 'lost applied', 'hand back applied', 'release applied', 'release LEASE_LOST'],
      ...['failed LEASE_REQUIRED', 'failed applied', 'completed INVALID_TRANSITION', 'timed_out INVALID_TRANSITION'],
    ];
    expect(expected.filter((what) => !met.has(what))).toEqual([]);
  }, 120_000);

  it('are answered alike on memory and on SQLite, and leave the same records and histories', async () => {
    const store = await openSqliteStore({ path: `${temporaryFolder()}/reeve.db` });
    await fc.assert(
      fc.asyncProperty(sequences, async ([commands, fenced]) => {
        const run = `run-${String(runs++)}`;
        const worlds = [await World.open(ALONE), await World.open({ ...ALONE, real: store })];
        const sides = worlds.map((world) => new Side(world, run, fenced));
        const comparison = new Comparison(sides, fenced);
        for (const next of commands) await comparison.take(next);
        const [memory, sqlite] = await Promise.all(sides.map((side) => side.whole()));
        expect(sqlite).toBe(memory);
        for (const world of worlds) expect(world.defects).toEqual([]);
        for (const world of worlds) world.kill();
      }),
      { numRuns: 100 },
    );
    await store.close();
  }, 120_000);
});
