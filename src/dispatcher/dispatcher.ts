/**
 * The dispatcher: worker sessions on one side, ready tasks on the other (architecture.md).
 * Composes pairing, sessions, renewal, reaping and delivery; the work stream service talks to this alone.
 */
import type { Authority } from '../authority/authority.js';
import type { ReportOutcome } from '../authority/report-work.js';
import { sessionGone } from '../authority/session-work.js';
import type { Read } from '../authority/task-reader.js';
import type { Cause } from '../kernel/cause.js';
import { type Candidate, type Explanation, explain } from '../kernel/explain.js';
import type { WorkerEvent } from '../kernel/intent.js';
import { NO_RULES, type PlacementRules } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import { refuse } from '../kernel/refusal.js';
import { ClaimDelivery } from './claim-delivery.js';
import type { QuietPeriod } from './quiet-period.js';
import { ReadyRoutes } from './ready-routes.js';
import { SessionReaper } from './session-reaper.js';
import { type Renewal, SessionRenewal } from './session-renewal.js';
import { type AttachAnswer, type NamedClaim, Sessions, type WorkerHello } from './sessions.js';
import { UnarySessions } from './unary-sessions.js';
import type { WorkSession } from './work-session.js';
import type { WorkSink } from './work-sink.js';

export interface DispatcherOptions {
  readonly authority: Authority;
  readonly quiet: QuietPeriod;
  /** Default: every kind is handed out, and every label is required. */
  readonly rules?: PlacementRules;
  readonly onError: (error: unknown) => void;
}

/** One frame's worth of events about one claim. */
export interface ClaimReport {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly events: readonly WorkerEvent[];
  readonly weightBytes: number;
}

export class Dispatcher {
  /** Sessions without a stream. */
  readonly unary: UnarySessions;
  readonly rules: PlacementRules;
  private readonly routes: ReadyRoutes;
  private readonly sessions: Sessions;
  private readonly renewal: SessionRenewal;
  private readonly reaper: SessionReaper;
  private readonly subscriptions: readonly (() => void)[];
  private accepting = true;

  constructor(private readonly options: DispatcherOptions) {
    const { authority, quiet } = options;
    const onError = (error: unknown): void => {
      authority.noteFailure(error);
      options.onError(error);
    };
    const recheck = (session: WorkSession): void => void this.sessions.recheck(session).catch(onError);
    this.rules = options.rules ?? NO_RULES;
    this.routes = new ReadyRoutes(authority, this.rules, recheck, onError);
    this.sessions = new Sessions({
      authority,
      poolOf: (subscription) => this.routes.poolOf(subscription),
      delivery: () => delivery,
      wake: () => this.routes.wake(),
      onError,
    });
    this.unary = new UnarySessions(authority, this.sessions);
    const delivery = new ClaimDelivery({
      authority,
      sessionOf: (sessionId) => this.sessions.get(sessionId),
      sessions: () => this.sessions.all(),
      onSlotFree: () => this.routes.wake(),
      onError,
    });
    this.renewal = new SessionRenewal(authority, recheck);
    this.reaper = new SessionReaper(authority, this.sessions, quiet, onError);
    this.subscriptions = [authority.subscribe(delivery.onCommit), authority.subscribeToOutages(() => quiet.begin())];
    authority.useClaims(this.routes);
  }

  async start(): Promise<void> {
    await this.routes.start();
    await this.reaper.start();
  }

  open(hello: WorkerHello, sink: WorkSink): Promise<AttachAnswer> {
    return this.accepting ? this.sessions.open(hello, sink) : Promise.resolve(draining());
  }

  reattach(
    sessionId: string,
    secret: string,
    named: readonly NamedClaim[],
    hello: WorkerHello,
    sink: WorkSink,
  ): Promise<AttachAnswer> {
    return this.accepting ? this.sessions.reattach(sessionId, secret, named, hello, sink) : Promise.resolve(draining());
  }

  streamEnded(session: WorkSession, sink: WorkSink): void {
    this.sessions.streamEnded(session, sink);
  }

  /** A stream that took no claims, because its worker did not read, does again. */
  takesClaimsAgain(session: WorkSession, sink: WorkSink): void {
    if (session.takesClaimsAgain(sink)) this.routes.wake();
  }

  setSlots(session: WorkSession, slots: number): void {
    this.sessions.setSlots(session, slots);
  }

  /** Judges what the worker said under `attachment`; `settle` is called exactly once, after the commit. */
  report(
    session: WorkSession,
    attachment: number,
    claim: ClaimReport,
    cause: Cause,
    settle: (outcome: ReportOutcome) => void,
  ): void {
    if (session.attachment !== attachment) return settle({ kind: 'refused', refusal: sessionGone() });
    const { taskId, generation, epoch, events, weightBytes } = claim;
    const { sessionId } = session.identity;
    const { authority } = this.options;
    const held = session.held.get(taskId);
    const answeredThrough = (): number => (held?.epoch === epoch ? held.answeredThrough : 0);
    const chance = authority.random.chance();
    const report = { sessionId, generation, epoch, answeredThrough: answeredThrough(), events, chance, cause };
    authority.report({ taskId, report, attachment, weightBytes, answeredThrough }, (outcome) => {
      if (held?.epoch === epoch && outcome.kind === 'judged') held.answeredThrough = outcome.judgedThrough;
      settle(outcome);
    });
  }

  /**
   * The worker is alive and names the claims it believes it holds. Resolves after the renewal is committed. Claims
   * it has not named for one TTL are handed back.
   */
  heartbeat(
    session: WorkSession,
    attachment: number,
    named: readonly { taskId: string; epoch: number }[],
  ): Promise<Renewal> {
    if (session.attachment !== attachment) return Promise.resolve('gone');
    const { authority, quiet } = this.options;
    const now = authority.clock.monotonicMs();
    for (const { taskId, epoch } of named) {
      const held = session.held.get(taskId);
      if (held?.epoch === epoch) held.namedAt = now;
    }
    const { ttlMs } = session.identity;
    if (authority.now() >= quiet.quietSince() + ttlMs) this.handBackForgotten(session, now - ttlMs);
    return this.renewal.renew(session, attachment);
  }

  session(sessionId: string): WorkSession | undefined {
    return this.sessions.get(sessionId);
  }

  /** Why a task is where it is, as far as this process knows. Throws StoreError. */
  async explain(record: TaskRecord): Promise<Explanation> {
    const { authority, quiet } = this.options;
    const { lease, status } = record;
    const row = lease === null ? null : await authority.store.loadSession(lease.sessionId);
    const attached = row !== null && (this.sessions.get(row.sessionId)?.attached ?? false);
    return explain(record, {
      permitWait: await authority.reads.permitWait(record),
      now: authority.now(),
      quietSince: quiet.quietSince(),
      rules: this.rules,
      candidates: status === 'queued' ? this.candidates() : [],
      session: row === null || row.state === 'gone' ? null : { ...row, attached },
    });
  }

  /** The sessions of this process that are given claims, and how many each could take now. */
  private candidates(): Candidate[] {
    const candidates: Candidate[] = [];
    for (const { attached, draining, credit, identity, pool } of this.sessions.all()) {
      if (!attached || draining) continue;
      const { sessionId, workerName } = identity;
      candidates.push({ sessionId, workerName, subscription: pool.subscription, freeSlots: Math.max(credit, 0) });
    }
    return candidates;
  }

  /** No more claims for this session. */
  drain(session: WorkSession): Promise<void> {
    return this.sessions.drain(session);
  }

  /** The same for an operator, wherever the session is attached, if at all. False: it is gone. */
  drainById(sessionId: string): Promise<Read<boolean>> {
    return this.sessions.drainById(sessionId);
  }

  /** Stops claiming and tells every worker that the server is going; sessions and leases stay as they are. */
  beginDrain(reconnectAfterMs: number, graceMs: number): void {
    this.accepting = false;
    this.unary.close();
    this.routes.pause();
    for (const session of this.sessions.all()) session.sendDrain(reconnectAfterMs, graceMs);
  }

  stop(): void {
    this.accepting = false;
    this.routes.pause();
    this.reaper.stop();
    for (const unsubscribe of this.subscriptions) unsubscribe();
    for (const session of this.sessions.all()) session.close('draining');
  }

  private handBackForgotten(session: WorkSession, namedBefore: number): void {
    const { sessionId } = session.identity;
    for (const { taskId, epoch, namedAt } of session.held.values()) {
      if (namedAt >= namedBefore) continue;
      const intent = {
        kind: 'hand_back',
        lease: { sessionId, epoch },
        why: 'forgotten',
        cause: FORGOTTEN_CAUSE,
      } as const;
      void this.options.authority.apply({ taskId, intent }).then((answer) => {
        // Not held in the store either: another process ended it, and only the slot is left to be freed.
        if (answer.kind === 'unchanged' && session.letGo(taskId, epoch)) this.routes.wake();
      });
    }
  }
}

const FORGOTTEN_CAUSE: Cause = {
  actor: { type: 'reaper', id: 'reeve' },
  principal: 'reeve',
  source: 'authority',
  reason: null,
  causation: null,
  authoritativeAt: null,
};

function draining(): AttachAnswer {
  return { ok: false, refusal: refuse('DRAINING', 'the service is stopping; connect elsewhere') };
}
