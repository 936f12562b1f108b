// What must hold after every step of every history (quality.md, "Invariants"; lifecycle.md sections 1 to 7), written
// from the contract and not from the kernel: the AEP rows are the document's, the timers are counted once more, and
// what became of an owner is told from who asked for what.

import assert from 'node:assert/strict';
import { type EdgeIntent, isDeclaredEdge, mayTake } from '../../src/kernel/edges.js';
import { type TaskEvent, isFact } from '../../src/kernel/event.js';
import { fold } from '../../src/kernel/fold.js';
import { readyOrder } from '../../src/kernel/placement.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { isTerminal } from '../../src/kernel/status.js';
import { nextDueAt } from '../../src/kernel/timers.js';
import { aepAllows } from './aep-table.js';
import type { Happened } from './history-walk.js';

type OwnerEnd = 'never_claimed' | 'claimed' | 'stopped_itself' | 'lost';

export class Invariants {
  private events = 1;
  private revisions = 1;
  private epoch = 0;
  private attempts = 0;
  /** The last word of the worker in this epoch, by its own number. */
  private workerSeq = 0;
  private aep = 'submitted';
  private owner: OwnerEnd = 'never_claimed';
  private request: TaskEvent | null = null;
  private terminalFacts = 0;

  check(happened: Happened): void {
    const { before, after, events, did } = happened;
    if (did.kind === 'intent' && did.verdict.kind !== 'applied') {
      assert.deepEqual(events, []);
      assert.equal(after, before);
    }
    if (events.length > 0) assert.notEqual(after, before);
    if (events.length > 0) rightful(happened);
    let status = before.status;
    for (const event of events) {
      this.numbers(event);
      if (event.type === 'reeve.task.generation_started') this.newGeneration(event, before);
      if (event.to !== null) {
        assert.equal(event.from, status);
        assert.ok(isDeclaredEdge(event.from, event.to), `${event.from ?? ''} to ${event.to}`);
        status = event.to;
      }
      this.claims(event, happened);
      this.projection(event);
      this.fence(event, happened);
      this.terminal(event);
    }
    assert.equal(after.status, status);
    this.record(after);
  }

  /** The same knowledge, to go on from here on another path. */
  fork(): Invariants {
    return Object.assign(new Invariants(), this);
  }

  /** The record is the fold of the whole history, and of nothing else. */
  checkFold(record: TaskRecord, history: readonly TaskEvent[]): void {
    assert.deepEqual(fold(record.admission, history), record);
    assert.deepEqual(
      history.map((event) => event.number),
      history.map((_, index) => index + 1),
    );
    const revisions = history.flatMap((event) => (event.revision === null ? [] : [event.revision]));
    assert.deepEqual(
      revisions,
      revisions.map((_, index) => index + 1),
    );
  }

  private numbers(event: TaskEvent): void {
    this.events += 1;
    assert.equal(event.number, this.events);
    if (isFact(event.type)) this.revisions += 1;
    assert.equal(event.revision, isFact(event.type) ? this.revisions : null);
    if (event.type === 'reeve.task.claimed') this.workerSeq = 0;
    if (event.workerSeq === null) return;
    assert.ok(event.workerSeq > this.workerSeq, 'a word of the worker is applied once, in its order');
    this.workerSeq = event.workerSeq;
  }

  private newGeneration(event: TaskEvent, before: TaskRecord): void {
    assert.ok(isTerminal(before.status) || before.status === 'suspended');
    assert.equal(event.generation, before.generation + 1);
    this.attempts = 0;
    this.owner = 'never_claimed';
    this.request = null;
    this.terminalFacts = 0;
  }

  /** Epochs, attempts, and how the owner of the last claim ended: told from what was asked, not from the event. */
  private claims(event: TaskEvent, { before, did }: Happened): void {
    if (event.type === 'reeve.task.claimed') {
      assert.equal(this.request, null, 'no claim after a cancel request');
      assert.ok((event.epoch ?? 0) > this.epoch, 'epochs grow');
      this.epoch = event.epoch ?? 0;
      this.attempts += 1;
      this.owner = 'claimed';
      return;
    }
    const leaves = event.from === 'running';
    if (!leaves) return;
    const byHolder =
      did.kind === 'report' ||
      (did.kind === 'intent' && 'lease' in did.intent && did.intent.lease !== null && did.intent.kind !== 'hand_back');
    this.owner = byHolder ? 'stopped_itself' : 'lost';
    const released = did.kind === 'intent' && did.intent.kind === 'release';
    const unaccepted = before.lease?.acceptedAt === null;
    const handedBack =
      unaccepted && did.kind === 'intent' && ['hand_back', 'session_lost', 'tick'].includes(did.intent.kind);
    if (event.type === 'reeve.task.suspended' && byHolder) this.attempts -= 1;
    if (event.type !== 'reeve.task.retry_scheduled') return;
    if (released || handedBack) this.attempts -= 1;
    else assert.ok(before.attempt < before.policy.retry.maxAttempts, 'the last attempt is not retried');
    assert.ok(mayTake('running', 'retry_wait', retryEdge(event.data.cause)));
  }

  private projection(event: TaskEvent): void {
    if (event.aep === null) return;
    if (event.type === 'reeve.task.generation_started') assert.equal(event.aep, 'submitted');
    else assert.ok(aepAllows(this.aep, event.aep), `${this.aep} to ${event.aep} by ${event.type}`);
    this.aep = event.aep;
  }

  private fence(event: TaskEvent, { after, did }: Happened): void {
    if (event.type === 'task.cancel.requested') {
      assert.equal(this.request, null, 'one request in a generation');
      this.request = event;
      return;
    }
    if (this.request === null || event.to === null) return;
    assert.ok(isTerminal(event.to) && event.to !== 'skipped', `${event.to} after a cancel request`);
    // With its parent it ends as its parent did, whatever was asked of it alone.
    if (did.kind === 'family') return;
    if (after.policy.cancellationPolicy === 'FENCED') {
      assert.ok(event.to === 'completed' || event.to === 'cancelled', `${event.to} behind the fence`);
      if (event.to === 'completed') {
        const proof = did.kind === 'intent' && did.intent.kind === 'settle' ? did.intent.authoritativeEvent : null;
        assert.ok(proof !== null && proof.number < this.request.number, 'completed before the request');
        assert.equal(proof.generation, event.generation);
        assert.equal(event.cause.authoritativeAt, proof.at);
      }
    } else if (event.type === 'task.failed') {
      const error = event.data.ending?.error;
      const listed = after.policy.retry.nonRetryableCodes.includes(error?.code ?? '');
      assert.ok(error?.retryable === false || listed, 'only a failure for good outlives a request');
    }
  }

  private terminal(event: TaskEvent): void {
    assert.equal(this.terminalFacts, 0, `${event.type} after the end of its generation`);
    if (event.to === null || !isTerminal(event.to)) return;
    this.terminalFacts += 1;
    const stopped = this.owner !== 'lost';
    assert.equal('ownerStopped' in event.data && event.data.ownerStopped, stopped, 'owner_stopped');
    if (event.to === 'cancelled') assert.notEqual(this.request, null, 'a request before its settlement');
  }

  private record(record: TaskRecord): void {
    assert.equal(record.lastEvent, this.events);
    assert.equal(record.revision, this.revisions);
    assert.equal(record.attempt, this.attempts);
    assert.equal(record.epoch, this.epoch);
    assert.ok(record.handBacks < 10, 'the tenth delivery is the last');
    assert.equal(record.aep, this.aep);
    assert.equal(record.everClaimed, this.owner !== 'never_claimed');
    assert.equal(record.cancellation?.eventNumber ?? null, this.request?.number ?? null);
    assert.equal(record.lease === null, record.status !== 'running');
    if (record.lease !== null) assert.equal(record.lease.epoch, record.epoch);
    else assert.equal(record.ownerStopped, this.owner !== 'lost');
    assert.equal(record.retryAt === null, record.status !== 'retry_wait');
    if (record.status === 'queued') assert.notEqual(record.queuedAt, null);
    assert.equal(record.finishedAt === null, !isTerminal(record.status));
    assert.equal(this.terminalFacts, isTerminal(record.status) ? 1 : 0);
    if (record.cancellation !== null) assert.ok(record.status === 'running' || isTerminal(record.status));
    assert.equal(nextDueAt(record), earliestTimer(record));
    assert.ok(isRemembered(record), `${record.status} is forgotten`);
  }
}

/** C5: what names a lease changes nothing unless it is the one in force. */
function rightful({ before, did }: Happened): void {
  const { lease } = before;
  if (did.kind === 'family') return;
  if (did.kind === 'report') {
    assert.equal(did.report.generation, before.generation, 'an old generation was heard');
    assert.equal(did.report.epoch, lease?.epoch, 'an old epoch was heard');
    assert.equal(did.report.sessionId, lease?.sessionId, 'another session was heard');
    return;
  }
  const { intent, guards } = did;
  if ('lease' in intent && intent.lease !== null) {
    assert.equal(intent.lease.epoch, lease?.epoch, 'an old epoch acted');
    assert.equal(intent.lease.sessionId ?? lease?.sessionId, lease?.sessionId, 'another session acted');
  }
  if (intent.kind === 'settle' && lease !== null) assert.notEqual(intent.lease, null, 'settled without a lease');
  if (intent.kind === 'session_lost') assert.equal(intent.sessionId, lease?.sessionId);
  assert.equal(guards.generationId ?? before.generationId, before.generationId);
  assert.equal(guards.fromStatus ?? before.status, before.status);
  assert.equal(guards.expectedRevision ?? before.revision, before.revision);
}

function retryEdge(cause: string): EdgeIntent {
  if (cause === 'failure' || cause === 'time_out') return 'retry';
  return cause === 'lease_lost' ? 'lease_lost' : cause === 'release' ? 'release' : 'hand_back';
}

/** The timers counted once more: what runs, on which record, from when. */
function earliestTimer(record: TaskRecord): number | null {
  const { policy, lease, status } = record;
  const due: number[] = [];
  const add = (from: number | null | undefined, span: number | null): void => {
    if (from !== null && from !== undefined && span !== null) due.push(from + span);
  };
  if (isTerminal(status)) return null;
  add(record.generationStartedAt, policy.timeoutMs);
  if (status === 'running') {
    add(record.cancellation?.graceEndsAt, 0);
    if (lease?.acceptedAt === null) add(lease.acceptBy, 0);
    else {
      add(lease?.claimedAt, policy.attemptTimeoutMs);
      add(lease?.lastWordAt, policy.progressTimeoutMs);
    }
  } else {
    if (record.startedAt === null) add(record.generationStartedAt, policy.startByMs);
    add(record.retryAt, 0);
    if (status === 'queued') add(record.notBeforeAt, 0);
  }
  return due.length === 0 ? null : Math.min(...due);
}

/** C6: a live task has a lease, a timer of its own, somebody who holds it back, or it is claimable. */
function isRemembered(record: TaskRecord): boolean {
  switch (record.status) {
    case 'running':
      return record.lease !== null;
    case 'retry_wait':
      return record.retryAt !== null && nextDueAt(record) !== null;
    case 'queued':
      return readyOrder(record) !== null || (record.notBeforeAt !== null && nextDueAt(record) !== null);
    default:
      return true;
  }
}
