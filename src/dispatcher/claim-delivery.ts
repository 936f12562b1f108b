/**
 * From commits to streams: what a commit means for the sessions attached here (lifecycle.md sections 6 and 7).
 * A claim is sent after its commit, a cancel as soon as it is requested, a lost lease as soon as it is lost.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import type { TaskEvent } from '../kernel/event.js';
import type { Lease, TaskRecord } from '../kernel/record.js';
import { workerDeadline } from '../kernel/timers.js';
import { lossCause, lossCauseOf } from './loss-causes.js';
import type { WorkSession } from './work-session.js';
import type { CancelNotice } from './work-sink.js';

/** After each of them the owner is sent the cancel as it stands. */
const CANCELS: ReadonlySet<TaskEvent['type']> = new Set(['task.cancel.requested', 'reeve.task.cancel_hastened']);

export interface DeliveryContext {
  readonly authority: Authority;
  /** The session of this process, attached or lingering; undefined when it is another's. */
  readonly sessionOf: (sessionId: string) => WorkSession | undefined;
  /** All of them. */
  readonly sessions: () => Iterable<WorkSession>;
  /** A slot came back. */
  readonly onSlotFree: () => void;
  readonly onError: (error: unknown) => void;
}

export class ClaimDelivery {
  constructor(private readonly context: DeliveryContext) {}

  /** The commit listener. */
  readonly onCommit = (commit: Committed): void => {
    const { before, record, events } = commit;
    const old = before?.lease ?? null;
    if (old !== null && record.lease?.epoch !== old.epoch) this.end(old, commit);
    if (before === null && events[0]?.type === 'reeve.task.repaired') this.endUnless(record);
    for (const event of events) {
      if (event.type === 'reeve.task.claimed' && record.lease?.epoch === event.epoch) this.begin(record, record.lease);
      if (CANCELS.has(event.type) && record.lease !== null) this.sendCancel(record, record.lease);
    }
  };

  /** The pending cancels of a session that has just attached: the first frames it gets. */
  cancelAgain(session: WorkSession, record: TaskRecord): void {
    if (record.lease !== null && record.cancellation !== null) session.cancel(this.noticeOf(record, record.lease));
  }

  private begin(record: TaskRecord, lease: Lease): void {
    const session = this.context.sessionOf(lease.sessionId);
    if (session === undefined) return;
    const { taskId } = record.admission;
    session.hold({
      taskId,
      generation: record.generation,
      epoch: lease.epoch,
      answeredThrough: 0,
      namedAt: this.context.authority.clock.monotonicMs(),
      sent: false,
      cancel: null,
    });
    this.deliver(session, record, lease.epoch);
  }

  private deliver(session: WorkSession, record: TaskRecord, epoch: number): void {
    const { taskId } = record.admission;
    const send = (checkpointJson: string | null, inputJson: string | null): void => {
      const held = session.held.get(taskId);
      // A claim that ended while its payloads were being read is not sent any more.
      if (held?.epoch !== epoch) return;
      held.sent = true;
      const tokens = this.context.authority.tokens.ofClaim(taskId, epoch);
      session.deliver({ record, epoch, ...tokens, checkpointJson, inputJson, deadlineAt: workerDeadline(record) });
      if (held.cancel !== null) session.cancel(held.cancel);
    };
    if (record.checkpointEvent === null && record.inputEvent === null) return send(null, null);
    Promise.all([
      this.payload(taskId, record.checkpointEvent, checkpointOf),
      this.payload(taskId, record.inputEvent, inputOf),
    ]).then(([checkpointJson, inputJson]) => send(checkpointJson, inputJson), this.context.onError);
  }

  private async payload(
    taskId: string,
    eventNumber: number | null,
    pick: (event: TaskEvent) => string | null,
  ): Promise<string | null> {
    if (eventNumber === null) return null;
    const stored = await this.context.authority.reads.event(taskId, eventNumber);
    // Unread for now: the claim stays unaccepted and is handed back by its timer, so nothing is lost.
    if (!stored.ok) throw new Error(`payload of event ${String(eventNumber)} unread: ${stored.refusal.message}`);
    return stored.value === null ? null : pick(stored.value.event);
  }

  private end(lease: Lease, commit: Committed): void {
    const session = this.context.sessionOf(lease.sessionId);
    if (session === undefined) return;
    const held = session.held.get(commit.taskId);
    if (!session.letGo(commit.taskId, lease.epoch)) return;
    this.context.onSlotFree();
    const cause = lossCause(commit);
    if (cause === null) return;
    session.lose({ taskId: commit.taskId, generation: held?.generation ?? 0, epoch: lease.epoch, cause });
  }

  /** What the task was before its repair is not known: whoever holds a claim that the mended record does not give ends it. */
  private endUnless(record: TaskRecord): void {
    const { taskId } = record.admission;
    for (const session of this.context.sessions()) {
      const held = session.held.get(taskId);
      if (held === undefined) continue;
      const { generation, epoch } = held;
      if (record.lease?.epoch === epoch && record.lease.sessionId === session.identity.sessionId) continue;
      session.letGo(taskId, epoch);
      this.context.onSlotFree();
      session.lose({ taskId, generation, epoch, cause: lossCauseOf(record, epoch) });
    }
  }

  private sendCancel(record: TaskRecord, lease: Lease): void {
    const session = this.context.sessionOf(lease.sessionId);
    const held = session?.held.get(record.admission.taskId);
    const notice = this.noticeOf(record, lease);
    // Never before its claim: a worker would not know what it is about, and is not told again.
    if (held?.epoch === lease.epoch && !held.sent) held.cancel = notice;
    else session?.cancel(notice);
  }

  private noticeOf(record: TaskRecord, lease: Lease): CancelNotice {
    const { taskId } = record.admission;
    const graceEndsAt = record.cancellation?.graceEndsAt ?? null;
    return {
      taskId,
      generation: record.generation,
      epoch: lease.epoch,
      cancellationToken: this.context.authority.tokens.ofClaim(taskId, lease.epoch).cancellationToken,
      reason: record.cancellation?.reason ?? null,
      graceMs: graceEndsAt === null ? null : Math.max(graceEndsAt - this.context.authority.now(), 0),
    };
  }
}

function checkpointOf(event: TaskEvent): string | null {
  return event.type === 'reeve.task.checkpoint' ? event.data.checkpointJson : null;
}

function inputOf(event: TaskEvent): string | null {
  if (event.type === 'reeve.task.resumed' || event.type === 'reeve.task.generation_started')
    return event.data.inputJson;
  return null;
}
