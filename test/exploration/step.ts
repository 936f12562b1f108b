// One step of a world: the plans of a proposal are written as the store would write them, those who asked are answered,
// and what happened on each record is held against its invariants. Throws where one does not hold.

import assert from 'node:assert/strict';
import type { PlanVerdict } from '../../src/store/commit-plan.js';
import { isTerminal } from '../../src/kernel/status.js';
import type { Happened } from '../kernel/history-walk.js';
import { type ModelStore, type StoreGuard, write } from './model-store.js';
import type { Move } from './moves.js';
import type { Part, Proposal } from './proposal.js';
import { type Known, type SentClaim, type Telling, type World, forkOf } from './world.js';

/** Older claims than the last two of a task are as stale as the one before the last. */
const CLAIMS_REMEMBERED = 2;

/**
 * Where a move leads; the very same world when it changed nothing. `late`: it was decided on an older state, and may be
 * lost; what was decided on what the store holds must not be.
 */
export function step(
  world: World,
  move: Move,
  proposal: Proposal,
  when: 'fresh' | 'late',
  missing: StoreGuard | null = null,
): World {
  let { store, known, claims } = world;
  const changed = new Set<string>();
  proposal.said = null;
  for (const part of proposal.parts) {
    const { unit, plan } = part;
    if (plan === null) {
      for (const { onCommitted } of unit.answers) onCommitted(null);
      continue;
    }
    const { verdict, store: next } = write(store, plan, changed, missing);
    if (next === null) {
      if (when === 'fresh')
        assert.ok(mayBeLost(verdict, move), `lost on what the store holds: ${JSON.stringify(verdict)}`);
      for (const { work } of unit.answers) work.lost(verdict);
      continue;
    }
    known = remember(known, store, part);
    sessionsAllow(part, store, move);
    claims = sent(claims, part);
    store = next;
    for (const { record } of plan.records) changed.add(record.admission.taskId);
    const commit = unit.kind === 'record' ? unit.committed(verdict) : null;
    for (const { onCommitted } of unit.answers) onCommitted(commit);
  }
  known = answered(known, move, proposal);
  claims = heard(claims, move, proposal);
  const telling = told(world.telling, move, proposal);
  if (store === world.store && claims === world.claims && telling === world.telling) return world;
  return { ...world, store, known, claims, telling };
}

/** Keys, ids and sessions are for the store to say; and the loop tells from what it has read before. */
function mayBeLost(verdict: PlanVerdict, { tells }: Move): boolean {
  return verdict.kind !== 'conflict' || verdict.subject === 'session' || tells !== undefined;
}

function remember(known: Known, before: ModelStore, { unit, steps }: Part): Known {
  if (unit.kind !== 'record' || unit.draft.events.length === 0) return known;
  const { taskId } = unit.draft.record.admission;
  if (unit.base === null) assert.ok(!known.tasks.has(taskId), `${taskId} is admitted twice`);
  const invariants = forkOf(known, taskId);
  for (const happened of steps) {
    invariants.check(happened);
    familyAllows(happened, before);
  }
  const { events } = unit.draft;
  const ends = new Map(known.ends);
  for (const { to, generation } of events) {
    if (to !== null && isTerminal(to)) ends.set(`${taskId} ${generation}`, to);
  }
  return {
    ...known,
    tasks: new Map(known.tasks).set(taskId, invariants),
    histories: new Map(known.histories).set(taskId, { events, before: known.histories.get(taskId) ?? null }),
    ends,
  };
}

/** What the store held when it wrote: a child is not claimed, begun anew or heard under a parent that is over. */
function familyAllows({ events, after }: Happened, store: ModelStore): void {
  const link = after.admission.policy.parent;
  if (link?.attached !== true) return;
  const parent = store.records.get(link.taskId);
  const lives = parent !== undefined && parent.generationId === link.generationId && !isTerminal(parent.status);
  for (const { type, workerSeq } of events) {
    if (workerSeq !== null) assert.ok(lives, `${type} of a child whose parent is over`);
    if (type !== 'reeve.task.claimed' && type !== 'reeve.task.generation_started') continue;
    assert.ok(lives && parent.cancellation === null, `${type} of a child whose parent is over or fenced`);
  }
}

/** A claim needs a session that takes work, a worker's word one that is not gone, and the stream that is its newest. */
function sessionsAllow({ unit, steps }: Part, store: ModelStore, { wish }: Move): void {
  if (unit.kind !== 'record') return;
  for (const { before, events, did } of steps) {
    const claimed = events.find(({ type }) => type === 'reeve.task.claimed');
    if (claimed?.type === 'reeve.task.claimed') {
      assert.equal(store.sessions.get(claimed.data.sessionId)?.state, 'live', 'claimed for a session that takes none');
    }
    if (did.kind !== 'report' || wish?.kind !== 'report') continue;
    const row = store.sessions.get(before.lease?.sessionId ?? '');
    assert.notEqual(row?.state ?? 'gone', 'gone', 'a session that is gone was heard');
    assert.equal(row?.attachment, wish.request.attachment, 'a stream that was replaced was heard');
  }
}

function sent(claims: readonly SentClaim[], { unit }: Part): readonly SentClaim[] {
  if (unit.kind !== 'record') return claims;
  const { record, events } = unit.draft;
  const { taskId } = record.admission;
  let after = claims;
  for (const event of events) {
    if (event.type !== 'reeve.task.claimed') continue;
    const { sessionId } = event.data;
    const { generation, epoch } = event;
    const older = after.filter((claim) => claim.taskId === taskId).slice(1 - CLAIMS_REMEMBERED);
    const others = after.filter((claim) => claim.taskId !== taskId);
    after = [...others, ...older, { taskId, sessionId, generation, epoch: epoch ?? 0, answered: 0 }];
  }
  return after;
}

/** An answer reached the worker: it goes on from there. */
function heard(claims: readonly SentClaim[], { claim, heard: reaches }: Move, { said }: Proposal) {
  if (claim === undefined || reaches !== true || said?.kind !== 'report' || said.answer.kind !== 'judged')
    return claims;
  const { judgedThrough } = said.answer;
  if (judgedThrough <= claim.answered) return claims;
  return claims.map((other) =>
    other.taskId === claim.taskId && other.epoch === claim.epoch ? { ...other, answered: judgedThrough } : other,
  );
}

function told(telling: Telling | null, { tells }: Move, { said }: Proposal): Telling | null {
  if (tells === undefined || telling === null || said?.kind !== 'follow') return telling;
  // The loop leaves a row that it could not work off, and comes back to it.
  if (tells === 'end' || said.answer === 'again') return null;
  return { ...telling, pending: telling.pending.filter((follow) => follow !== tells) };
}

/** A key is judged once; a repeat is told what that once came to, and another content under it is a conflict (C2, C9). */
function answered(known: Known, { wish }: Move, { said }: Proposal): Known {
  if (wish?.kind !== 'intent' || said?.kind !== 'intent') return known;
  const { key, taskId } = wish.request;
  const { answer } = said;
  if (key === undefined) return known;
  const { contentHash } = key;
  const name = `${taskId} ${key.key}`;
  const first = known.answers.get(name);
  if (answer.kind === 'replayed') {
    assert.equal(answer.remembered.revision, first?.revision, `${name} was replayed as another fact`);
    assert.equal(contentHash, first?.contentHash, `${name} was replayed to whoever asked for something else`);
  }
  if (answer.kind !== 'applied' && answer.kind !== 'unchanged') return known;
  assert.equal(first, undefined, `${name} was judged twice`);
  const fact = answer.kind === 'applied' ? answer.events.findLast(({ revision }) => revision !== null) : undefined;
  const revision =
    fact?.revision ?? (answer.kind === 'unchanged' ? (answer.record.cancellation?.revision ?? null) : null);
  return { ...known, answers: new Map(known.answers).set(name, { contentHash, revision }) };
}
