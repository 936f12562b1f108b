// How a task gets to each status, through the authority alone: no dispatcher, no timers and no telling loop, so that
// nothing happens but what a test does. Sessions are rows; claims and words are intents.

import type { IntentAnswer, IntentKey } from '../../../src/authority/intent-work.js';
import type { TaskPolicyInput } from '../../../src/kernel/admission/policy.js';
import type { Intent, RequestCancellationIntent, SettleIntent } from '../../../src/kernel/intent.js';
import type { SettledStatus } from '../../../src/kernel/status.js';
import { causeOf } from '../../support/submissions.js';
import { failure } from '../../support/test-worker.js';
import type { World } from '../../support/world.js';

export const RETRY_MS = 1_000;
export const TOTAL_MS = 3_600_000;

/** A task somewhere in its life, in the first of several processes on one store. */
export class Situation {
  sessionId: string;

  constructor(
    readonly world: World,
    readonly taskId: string,
  ) {
    this.sessionId = `session of ${taskId}`;
  }

  /** One task of a policy; `key` is its idempotency key and, without an id of its own, its name. */
  static async admit(world: World, name: string, policy: TaskPolicyInput = {}): Promise<Situation> {
    const full = { ...policy, timeoutMs: TOTAL_MS, retry: { initialMs: RETRY_MS, maxAttempts: 3, ...policy.retry } };
    const { admission } = await world.admit(name, { taskId: name, policy: full });
    return new Situation(world, admission.taskId);
  }

  /** It waits for another task, which is named after it. */
  static async waiting(world: World, name: string, policy: TaskPolicyInput = {}): Promise<Situation> {
    await Situation.admit(world, upstreamOf(name));
    const dependsOn = [{ taskId: upstreamOf(name), condition: 'succeeded' as const }];
    return Situation.admit(world, name, { ...policy, dependsOn });
  }

  async running(): Promise<this> {
    const { world, sessionId } = this;
    const times = { expiresAt: world.clock.nowMs() + 30_000, createdAt: world.clock.nowMs(), ttlMs: 30_000 };
    const row = { sessionId, state: 'live' as const, attachment: 1, lingerMs: null, workerName: 'w', helloJson: '{}' };
    await world.authority.writeSession({ kind: 'open', session: { ...row, ...times } });
    return this.claimed();
  }

  async claimed(): Promise<this> {
    return this.applied(claimBy(this.sessionId));
  }

  async accepted(): Promise<this> {
    const { generation, epoch } = await this.world.stored(this.taskId);
    const events = [
      { seq: 1, saying: { kind: 'accepted' as const } },
      { seq: 2, saying: { kind: 'started' as const } },
    ];
    const claim = { sessionId: this.sessionId, generation, epoch, answeredThrough: 0 };
    const report = { ...claim, events, chance: 0.5, cause: causeOf('worker') };
    await new Promise<void>((resolve) => {
      const request = { taskId: this.taskId, report, attachment: 1, weightBytes: 100 };
      this.world.authority.report(request, () => resolve());
    });
    return this;
  }

  async started(): Promise<this> {
    return (await this.running()).accepted();
  }

  /** Must be applied. */
  async applied(...intents: readonly Intent[]): Promise<this> {
    for (const intent of intents) {
      const answer = await this.apply(this.world, intent);
      if (answer.kind !== 'applied') throw new Error(`${intent.kind} of ${this.taskId} was ${JSON.stringify(answer)}`);
    }
    return this;
  }

  apply(world: World, intent: Intent, key?: IntentKey): Promise<IntentAnswer> {
    return world.apply({ taskId: this.taskId, intent, ...(key === undefined ? {} : { key }) });
  }

  pass(ms: number): this {
    this.world.clock.step(ms);
    return this;
  }
}

export function upstreamOf(name: string): string {
  return `${name}.upstream`;
}

export const cancel: RequestCancellationIntent = {
  kind: 'request_cancellation',
  graceMs: null,
  cause: causeOf('operator'),
};
export const hold: Intent = { kind: 'suspend', lease: null, cause: causeOf('operator') };
export const skip: Intent = {
  kind: 'skip',
  cause: { ...causeOf('operator'), reason: { code: 'run.skipped.operator', summary: 'not today', evidenceRefs: [] } },
};
export const tick: Intent = { kind: 'tick', quietSince: 0, chance: 0.5 };

export function resume(newGenerationId: string | null = null): Intent {
  return { kind: 'resume', newGenerationId, spareGenerationId: 'spare', inputJson: null, cause: causeOf('operator') };
}

export function claimBy(sessionId: string): Intent {
  const by = { worker: 'w', sessionTtlMs: 30_000, acceptTimeoutMs: 5_000, cause: causeOf('worker') };
  return { kind: 'claim', sessionId, ...by };
}

/** By an operator where there is no lease. */
export function settle(outcome: SettledStatus, overrides: Partial<SettleIntent> = {}): SettleIntent {
  const ending = outcome === 'failed' ? failure() : null;
  const rest = { resultJson: null, ending, lease: null, authoritativeEvent: null, chance: 0.5 };
  return { kind: 'settle', outcome, ...rest, cause: causeOf('operator'), ...overrides };
}

/** What the holder of the first claim asks for. */
export function asHolder({ sessionId }: Situation, epoch = 1) {
  const lease = { epoch, sessionId };
  const cause = causeOf('worker');
  const handBack = (why: 'undelivered' | 'forgotten'): Intent => ({ kind: 'hand_back', lease, why, cause });
  return {
    settles: (outcome: SettledStatus, overrides: Partial<SettleIntent> = {}) =>
      settle(outcome, { lease, cause, ...overrides }),
    failsForGood: settle('failed', { lease, cause, ending: failure(false) }),
    suspends: { kind: 'suspend', lease, cause } as Intent,
    releases: { kind: 'release', lease, checkpointJson: null, cause } as Intent,
    isLost: { kind: 'session_lost', sessionId, cause } as Intent,
    handsBack: handBack('undelivered'),
    forgets: handBack('forgotten'),
  };
}
