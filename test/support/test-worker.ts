// A worker at the end of a recorded stream: it numbers its events and says what a test tells it to.

import type { ReportOutcome } from '../../src/authority/report-work.js';
import type { Renewal } from '../../src/dispatcher/session-renewal.js';
import type { AttachAnswer, Attached, NamedClaim, WorkerHello } from '../../src/dispatcher/sessions.js';
import type { WorkSession } from '../../src/dispatcher/work-session.js';
import type { Ending, TaskError } from '../../src/kernel/record.js';
import type { WorkerEvent, WorkerSaying } from '../../src/kernel/intent.js';
import type { Subscription } from '../../src/kernel/placement.js';
import { NO_ENDING } from '../../src/kernel/settlement.js';
import { RecordingSink } from './recording-sink.js';
import { causeOf, subscription } from './submissions.js';
import type { World } from './world.js';

export interface WorkerGiven {
  readonly name?: string;
  readonly slots?: number;
  readonly ttlMs?: number;
  readonly lingerMs?: number | null;
  readonly serves?: Subscription;
}

export type Said = WorkerSaying | 'accepted' | 'started' | 'completed' | 'failed' | 'fatal' | 'progress' | 'cancelled';

export function helloOf(given: WorkerGiven = {}): WorkerHello {
  return {
    workerName: given.name ?? 'worker-1',
    ttlMs: given.ttlMs ?? null,
    lingerMs: given.lingerMs ?? null,
    slots: given.slots ?? 1,
    subscription: given.serves ?? subscription(),
    helloJson: '{}',
  };
}

/** Opens a session, sure that it is granted. */
export async function openWorker(world: World, given: WorkerGiven = {}): Promise<TestWorker> {
  const sink = new RecordingSink();
  const answer = await world.dispatcher.open(helloOf(given), sink);
  return new TestWorker(world, given, sink, granted(answer));
}

export function granted(answer: AttachAnswer): Attached {
  if (!answer.ok) throw new Error(`the session was refused: ${answer.refusal.reason}`);
  return answer.value;
}

export class TestWorker {
  readonly session: WorkSession;
  readonly secret: string;
  readonly attachment: number;
  private readonly spoken = new Map<string, number>();

  constructor(
    readonly world: World,
    readonly given: WorkerGiven,
    readonly sink: RecordingSink,
    readonly attached: Attached,
  ) {
    this.session = attached.session;
    this.secret = attached.secret;
    this.attachment = attached.session.attachment;
  }

  get sessionId(): string {
    return this.session.identity.sessionId;
  }

  /** The epoch of the latest claim of this task that reached it. */
  epochOf(taskId: string): number {
    const claim = this.sink.claimed.findLast(({ record }) => record.admission.taskId === taskId);
    if (claim === undefined) throw new Error(`${taskId} was never sent here`);
    return claim.epoch;
  }

  /** Says these things about its latest claim of the task, numbered on. */
  say(taskId: string, ...said: Said[]): Promise<ReportOutcome> {
    return this.sayIn(taskId, this.epochOf(taskId), ...said);
  }

  sayIn(taskId: string, epoch: number, ...said: Said[]): Promise<ReportOutcome> {
    const claim = `${taskId} ${String(epoch)}`;
    const from = this.spoken.get(claim) ?? 0;
    this.spoken.set(claim, from + said.length);
    const events = said.map((saying, index) => ({ seq: from + index + 1, saying: sayingOf(saying) }));
    return this.sayNumbered(taskId, epoch, events);
  }

  /** Says these events under the numbers they carry, as a worker does that says something again. */
  sayNumbered(taskId: string, epoch: number, events: readonly WorkerEvent[]): Promise<ReportOutcome> {
    return new Promise((resolve) => {
      const report = { taskId, generation: 1, epoch, events, weightBytes: 100 };
      this.world.dispatcher.report(this.session, this.attachment, report, causeOf('worker'), resolve);
    });
  }

  /** Names what it holds, or what the test says; time passes until the renewal is gathered. */
  async heartbeat(named?: readonly { taskId: string; epoch: number }[]): Promise<Renewal> {
    const renewal = this.world.dispatcher.heartbeat(this.session, this.attachment, named ?? this.holding);
    await this.world.clock.advance(200);
    return renewal;
  }

  /** From now on it completes whatever it is sent, at once. */
  completeAll(): this {
    this.sink.onFrame = (frame) => {
      if (frame.kind !== 'claims') return;
      for (const { record } of frame.claims) void this.say(record.admission.taskId, 'accepted', 'started', 'completed');
    };
    return this;
  }

  get holding(): NamedClaim[] {
    return [...this.session.held.values()].map(({ taskId, epoch }) => ({ taskId, epoch, answeredThrough: 0 }));
  }

  /** The stream ends; the service notices. */
  drop(): void {
    this.sink.open = false;
    this.world.dispatcher.streamEnded(this.session, this.sink);
  }

  /** The same worker on a new stream, in this world or in another. */
  async reattach(
    options: { readonly world?: World; readonly named?: readonly NamedClaim[]; readonly given?: WorkerGiven } = {},
  ): Promise<TestWorker> {
    const world = options.world ?? this.world;
    const sink = new RecordingSink();
    const given = options.given ?? this.given;
    const named = options.named ?? this.holding;
    const answer = await world.dispatcher.reattach(this.sessionId, this.secret, named, helloOf(given), sink);
    const again = new TestWorker(world, given, sink, granted(answer));
    for (const [claim, through] of this.spoken) again.spoken.set(claim, through);
    return again;
  }
}

export function failure(retryable = true, code = 'tool_error'): Ending & { readonly error: TaskError } {
  return { ...NO_ENDING, error: { code, message: 'it broke', retryable, detailsJson: null } };
}

function sayingOf(said: Said): WorkerSaying {
  switch (said) {
    case 'accepted':
    case 'started':
      return { kind: said };
    case 'progress':
      return { kind: 'progress', progress: 0.5, message: null };
    case 'completed':
      return { kind: 'completed', resultJson: '{"pages":3}', ending: null };
    case 'cancelled':
      return { kind: 'cancelled', ending: null, reason: null };
    case 'failed':
      return { kind: 'failed', ending: failure(), retryAfterMs: null };
    case 'fatal':
      return { kind: 'failed', ending: failure(false), retryAfterMs: null };
    default:
      return said;
  }
}
