// One move decided: the authority's own works judge it into a batch over the view of whoever decides, and what comes of
// it are plans. The view may be older than the store; that is for the store to find out.

import { Batch } from '../../src/authority/batch.js';
import { NO_CLAIMS, type Assignment } from '../../src/authority/claim-source.js';
import { ClaimWork } from '../../src/authority/claim-work.js';
import { propagationOf } from '../../src/authority/family-links.js';
import { FollowWork, type Follow, type Followed } from '../../src/authority/follow-work.js';
import { IntentWork, type IntentAnswer, type IntentRequest } from '../../src/authority/intent-work.js';
import { PermitRooms } from '../../src/authority/permit-rooms.js';
import { PLAIN_RULES } from '../../src/authority/placement-index.js';
import { PropagatedWork } from '../../src/authority/propagated-work.js';
import { ReportWork, type ReportOutcome, type ReportRequest } from '../../src/authority/report-work.js';
import { SessionWork, type SessionAnswer } from '../../src/authority/session-work.js';
import { SubmitWork, type SubmitAnswer } from '../../src/authority/submit-work.js';
import type { Unit } from '../../src/authority/unit.js';
import type { Work } from '../../src/authority/work.js';
import type { Submission } from '../../src/kernel/admission/submission.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import { beginRecord } from '../../src/kernel/fold.js';
import { NO_GUARDS } from '../../src/kernel/intent.js';
import { readyOrder } from '../../src/kernel/placement.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitPlan, SessionWrite } from '../../src/store/commit-plan.js';
import type { Propagation } from '../../src/store/family-rows.js';
import { claim } from '../kernel/task-world.js';
import type { Did, Happened } from '../kernel/history-walk.js';
import type { ModelStore } from './model-store.js';

/** What somebody wants of the authority. */
export type Wish =
  | { readonly kind: 'submit'; readonly submission: Submission }
  | { readonly kind: 'intent'; readonly request: IntentRequest }
  | { readonly kind: 'claim'; readonly taskId: string; readonly sessionId: string; readonly attachment: number }
  | { readonly kind: 'report'; readonly request: ReportRequest }
  | { readonly kind: 'session'; readonly write: SessionWrite }
  | { readonly kind: 'follow'; readonly follow: Follow }
  | { readonly kind: 'propagated'; readonly row: Propagation };

export type Answer =
  | { readonly kind: 'submit'; readonly answer: SubmitAnswer }
  | { readonly kind: 'intent'; readonly answer: IntentAnswer }
  | { readonly kind: 'report'; readonly answer: ReportOutcome }
  | { readonly kind: 'session'; readonly answer: SessionAnswer }
  | { readonly kind: 'follow'; readonly answer: Followed };

/** One unit of the batch: its plan, and what happened on its record step by step. */
export interface Part {
  readonly unit: Unit;
  readonly plan: CommitPlan | null;
  readonly steps: readonly Happened[];
}

export interface Proposal {
  readonly parts: readonly Part[];
  /** The last answer that was given; filled in as the parts are committed or lost. */
  said: Answer | null;
}

const FAMILY: Did = { kind: 'family' };

/** `tell`: followers of what ends are told in the same transaction, as far as the view shows them. */
export function propose(view: ModelStore, now: number, wish: Wish, tell: boolean): Proposal {
  const batch = new Batch(
    now,
    (taskId) => view.records.get(taskId) ?? null,
    (taskId) => view.family.liveChildren.get(taskId) ?? 0,
    PLAIN_RULES,
  );
  const trail = new Trail(batch, now);
  const proposal = { parts: [] as readonly Part[], said: null as Answer | null };
  const work = workOf(view, wish, (answer) => (proposal.said = answer));
  if (work === null) return proposal;
  // Whatever a task is looked for, it is first brought to where its parent is; that is not what was asked for.
  if (work.taskId !== null) batch.locate(work.taskId);
  trail.note(null);
  work.judge(batch);
  trail.note(wish);
  if (tell) tellFollowers(batch, view, trail);
  proposal.parts = batch.inOrder().map((unit) => ({ unit, plan: unit.plan(PLAIN_RULES), steps: trail.stepsOf(unit) }));
  return proposal;
}

function workOf(view: ModelStore, wish: Wish, say: (answer: Answer) => void): Work | null {
  switch (wish.kind) {
    case 'submit': {
      const refuse = (): void => undefined;
      const newId = (): string => `${wish.submission.taskId ?? ''}-g1`;
      const context = { newId, resolveDuplicate: refuse, refuseUnlessKnown: refuse };
      return new SubmitWork(wish.submission, context, (answer) => say({ kind: 'submit', answer }));
    }
    case 'intent': {
      const { taskId, key } = wish.request;
      const work = new IntentWork(
        wish.request,
        () => Promise.resolve(null),
        (answer) => say({ kind: 'intent', answer }),
      );
      const original = key && view.ledger.get(`${taskId} ${key.key}`);
      // What the ledger holds is found before judging; a work takes it in just as it does after a lost race.
      if (original !== undefined) work.lost({ kind: 'repeated', original });
      return work;
    }
    case 'claim': {
      const record = view.records.get(wish.taskId);
      const order = record === undefined ? null : readyOrder(record);
      return order === null
        ? null
        : new ClaimWork(assignmentOf(wish, order), NO_CLAIMS, ACCEPT_TIMEOUT_MS, NO_ROOMS, alignNothing);
    }
    case 'report':
      return new ReportWork(wish.request, (answer) => say({ kind: 'report', answer }));
    case 'session':
      return new SessionWork(wish.write, (answer) => say({ kind: 'session', answer }));
    case 'follow':
      return new FollowWork(wish.follow, (answer) => say({ kind: 'follow', answer }));
    case 'propagated':
      return new PropagatedWork(wish.row, (answer) => say({ kind: 'follow', answer }));
  }
}

const ACCEPT_TIMEOUT_MS = 5_000;
/** Nothing needs a permit in these worlds. */
const NO_ROOMS = new PermitRooms(() => null);
const alignNothing = (): void => undefined;
const SESSION_TTL_MS = 30_000;

function assignmentOf(wish: Extract<Wish, { kind: 'claim' }>, order: number): Assignment {
  const { taskId, sessionId, attachment } = wish;
  return { taskId, sessionId, attachment, worker: sessionId, sessionTtlMs: SESSION_TTL_MS, readyOrder: order };
}

/** As the committer does it: level by level, also what telling adds, and nothing that another decision rests on. */
function tellFollowers(batch: Batch, view: ModelStore, trail: Trail): void {
  for (let at = 0; at < batch.units.length; at++) {
    const unit = batch.units[at];
    if (unit?.kind !== 'record' || unit.draft.events.length === 0) continue;
    const row = propagationOf(unit.base, unit.draft.record);
    if (row === null) continue;
    for (const follow of followersOf(view, row)) {
      if (batch.isSealed(follow.taskId)) continue;
      new FollowWork(follow, () => undefined).judge(batch);
      trail.note(null);
    }
  }
}

/** Who is to be told of a fact, as the store shows them. */
export function followersOf(view: ModelStore, row: Propagation): readonly Follow[] {
  const follows: Follow[] = [];
  for (const [key, live] of view.family.children) {
    const [parentId, taskId = ''] = key.split(' ');
    if (live && parentId === row.taskId) follows.push({ kind: 'child', taskId });
  }
  const { outcome, generation, eventNumber, taskId: upstreamId } = row;
  if (outcome === 'cancel_requested') return follows;
  for (const [key, condition] of view.family.edges) {
    const [upstream, of, taskId = ''] = key.split(' ');
    if (upstream !== upstreamId || of !== String(generation)) continue;
    const unsatisfied = view.family.unsatisfied.get(taskId) ?? 0;
    follows.push({ kind: 'waiter', taskId, upstreamId, generation, outcome, eventNumber, condition, unsatisfied });
  }
  return follows;
}

/** Which events of a batch came of what: of the wish itself, or of what became of others. */
class Trail {
  private readonly seen = new Map<Unit, { events: number; record: TaskRecord }>();
  private readonly steps = new Map<Unit, Happened[]>();

  constructor(
    private readonly batch: Batch,
    private readonly now: number,
  ) {}

  note(wish: Wish | null): void {
    for (const unit of this.batch.units) {
      if (unit.kind !== 'record') continue;
      const { draft, base } = unit;
      const seen = this.seen.get(unit) ?? beginningOf(draft, base);
      const events = draft.events.slice(seen.events);
      this.seen.set(unit, { events: draft.events.length, record: draft.record });
      if (events.length === 0) continue;
      const own = wish !== null && draft.record.admission.taskId === taskOf(wish);
      const happened = { before: seen.record, after: draft.record, events, now: this.now };
      const steps = this.steps.get(unit) ?? [];
      steps.push({ ...happened, did: own ? didOf(wish) : FAMILY });
      this.steps.set(unit, steps);
    }
  }

  stepsOf(unit: Unit): readonly Happened[] {
    return this.steps.get(unit) ?? [];
  }
}

function beginningOf(draft: { events: readonly TaskEvent[]; record: TaskRecord }, base: TaskRecord | null) {
  const [first] = draft.events;
  if (base !== null) return { events: 0, record: base };
  if (first === undefined) throw new Error('an admission without an event');
  return { events: 1, record: beginRecord(draft.record.admission, first) };
}

function taskOf(wish: Wish): string | null {
  switch (wish.kind) {
    case 'intent':
    case 'report':
      return wish.request.taskId;
    case 'claim':
      return wish.taskId;
    default:
      return null;
  }
}

/** Only what changed something is looked at: its verdict can have been but one. */
function didOf(wish: Wish): Did {
  const verdict = { kind: 'applied' } as const;
  switch (wish.kind) {
    case 'intent': {
      const { intent, guards = NO_GUARDS } = wish.request;
      return { kind: 'intent', intent, guards, verdict };
    }
    case 'claim':
      return { kind: 'intent', intent: claim({ sessionId: wish.sessionId }), guards: NO_GUARDS, verdict };
    case 'report':
      return { kind: 'report', report: wish.request.report, answer: { judgedThrough: 0, refused: [] } };
    default:
      return FAMILY;
  }
}
