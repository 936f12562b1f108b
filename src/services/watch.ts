/**
 * Watch: replay, then live, of one task (lifecycle.md section 9, promise C8): no gap, no duplicate within a stream, in
 * order; ends OK once the task's current generation is over and told. A reader may be slow in the replay, which is
 * read as it is taken; live no event is handed over beyond 1 MiB unread, and the next commit then finds a slow reader
 * and cuts it, with a cursor it can resume from.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import {
  type WatchRequest,
  type WatchRequestSchema,
  type WatchResponseSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import { refuse } from '../kernel/refusal.js';
import { isTerminal } from '../kernel/status.js';
import type { Timer } from '../lib/clock.js';
import type { StoredEvent } from '../store/task-store.js';
import { eventMessage } from '../wire/event-codec.js';
import type { TokenMint } from '../wire/opaque-token.js';
import { RefusalError, malformedField, unsupportedField } from '../wire/refusal-error.js';
import { toTimestamp } from '../wire/time-values.js';
import { requiredTaskId } from '../wire/transition-codec.js';
import type { ServerStreamHandler, StreamCall } from './call.js';
import { refusalOf } from './failures.js';
import type { TaskFeed } from './task-feed.js';
import { valueOf } from './task-views.js';

/** What a live reader may leave unread before it is cut. */
export const MAX_UNREAD_BYTES = 1_048_576;
/** Keeps idle streams and the proxies between alive. */
export const BOOKMARK_PERIOD_MS = 15_000;
const REPLAY_PAGE_EVENTS = 256;
/** Less than what a live reader may leave unread, so that a replay never gets one cut. */
const REPLAY_PAGE_BYTES = 262_144;

export interface WatchContext {
  readonly authority: Authority;
  readonly feed: TaskFeed;
  readonly tokens: TokenMint;
  readonly onDefect: (error: unknown) => void;
}

type Call = StreamCall<typeof WatchResponseSchema>;

export function watchHandler(
  context: WatchContext,
): ServerStreamHandler<typeof WatchRequestSchema, typeof WatchResponseSchema> {
  return (request, call) => {
    const watch = new TaskWatch(context, call, readWatch(request, context.tokens), request.aepOnly);
    watch.begin();
    return watch;
  };
}

interface WatchStart {
  readonly taskId: string;
  readonly purpose: string;
  /** The number of the last event the reader has; null: only what commits from now on. */
  readonly after: number | null;
}

function readWatch(request: WatchRequest, tokens: TokenMint): WatchStart {
  const { scope, cursor, fromStart } = request;
  switch (scope.case) {
    case undefined:
      throw malformedField('scope', 'is required');
    case 'taskId':
      break;
    case 'subtreeOf':
      throw unsupportedField('subtree_of');
    case 'queue':
      throw unsupportedField('queue');
    case 'namespace':
      throw unsupportedField('namespace');
  }
  const taskId = requiredTaskId('task_id', scope.value);
  const purpose = `watch\n${taskId}`;
  if (cursor === '') return { taskId, purpose, after: fromStart === false ? null : 0 };
  if (fromStart !== undefined) throw malformedField('from_start', 'not together with a cursor');
  return { taskId, purpose, after: Number(tokens.read('cursor', purpose, cursor)) };
}

class TaskWatch {
  private readonly unfollow: () => void;
  /** The number of the last event sent or passed over. */
  private last = 0;
  private sequence = 0;
  private live = false;
  /** Something was committed since the replay last looked. */
  private fresh = false;
  private over = false;
  private wake: (() => void) | null = null;
  private bookmark: Timer | null = null;
  /** Where the last event that the transport has taken leaves the reader. */
  private taken: string;

  constructor(
    private readonly context: WatchContext,
    private readonly call: Call,
    private readonly where: WatchStart,
    private readonly aepOnly: boolean,
  ) {
    this.taken = this.cursor(where.after ?? 0);
    this.unfollow = context.feed.follow(where.taskId, (commit) => this.committed(commit));
  }

  begin(): void {
    this.run(() => this.start());
  }

  drained(): void {
    this.wake?.();
  }

  closed(): void {
    this.finish(() => undefined);
  }

  private async start(): Promise<void> {
    const { taskId, after } = this.where;
    const record = valueOf(await this.context.authority.get(taskId));
    this.last = after ?? record.lastEvent;
    if (this.last > record.lastEvent) await this.requireEvent(this.last);
    this.taken = this.cursor(this.last);
    await this.replay();
  }

  /** A cursor may be of an event that is committed and not told to this thread yet; beyond that it is not of this task. */
  private async requireEvent(number: number): Promise<void> {
    const stored = valueOf(await this.context.authority.event(this.where.taskId, number));
    if (stored === null) throw new RefusalError(foreignCursor());
  }

  /**
   * Reads the history as fast as it is taken, until nothing is left that was committed before it looked. The record is
   * read before the history, so the history reaches at least as far. It may reach further: a commit is seen by readers
   * before its listeners hear of it. That one comes as it is published, and finds its events told.
   */
  private async replay(): Promise<void> {
    const { authority } = this.context;
    const { taskId } = this.where;
    let record: TaskRecord;
    for (;;) {
      this.fresh = false;
      record = valueOf(await authority.get(taskId));
      const page = valueOf(await authority.history(taskId, this.last, REPLAY_PAGE_EVENTS, REPLAY_PAGE_BYTES));
      for (const stored of page) this.tell(record.admission, stored);
      if (page.length > 0) await this.taking();
      else if (!this.fresh) break;
      if (this.over) return;
    }
    if (this.over) return;
    if (record.lastEvent > this.last) throw new Error('the history ends before the record does');
    this.live = true;
    if (isTerminal(record.status) && record.lastEvent === this.last) return this.endWell();
    await this.knowSequence();
    this.sendBookmark();
  }

  /** A reader that starts from now is told up to where everything lies behind it. */
  private async knowSequence(): Promise<void> {
    if (this.sequence > 0) return;
    const stored = valueOf(await this.context.authority.event(this.where.taskId, this.last));
    this.sequence = Math.max(this.sequence, stored?.sequence ?? 0);
  }

  private committed(commit: Committed): void {
    this.fresh = true;
    if (!this.live || this.over) return;
    // Looked at before this commit is sent, so that one large commit never cuts a reader who keeps up.
    if (this.call.pendingBytes > MAX_UNREAD_BYTES) return this.cutOff();
    for (const [index, event] of commit.events.entries()) {
      if (event.number <= this.last) continue;
      // The rest of a commit that is larger than what is held is read from the history, as it is taken.
      if (this.call.pendingBytes > MAX_UNREAD_BYTES) return this.goBack();
      this.tell(commit.record.admission, { event, sequence: commit.firstSequence + index, link: commit.link });
    }
    if (isTerminal(commit.record.status) && commit.record.lastEvent === this.last) this.endWell();
  }

  private goBack(): void {
    this.live = false;
    this.bookmark?.cancel();
    this.run(async () => {
      await this.taking();
      if (!this.over) await this.replay();
    });
  }

  private tell(admission: Admission, stored: Omit<StoredEvent, 'taskId'>): void {
    const { event, sequence } = stored;
    this.last = event.number;
    this.sequence = sequence;
    if (this.aepOnly && event.aep === null) return;
    const cursor = this.cursor(event.number);
    this.call.send({ cursor, item: { case: 'event', value: eventMessage(admission, stored) } }, () => {
      this.taken = cursor;
    });
    this.armBookmark();
  }

  /** Resolves when the transport has room for another page. */
  private async taking(): Promise<void> {
    while (!this.over && this.call.pendingBytes > REPLAY_PAGE_BYTES) {
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  private sendBookmark(): void {
    if (this.over || !this.live) return;
    const time = toTimestamp(this.context.authority.now());
    const value = { sequence: BigInt(this.sequence), time };
    // A stream whose reader has not taken what it has needs no sign of life.
    if (this.call.pendingBytes === 0) {
      this.call.send({ cursor: this.cursor(this.last), item: { case: 'bookmark', value } });
    }
    this.armBookmark();
  }

  private armBookmark(): void {
    if (!this.live || this.over) return;
    this.bookmark?.cancel();
    this.bookmark = this.context.authority.clock.after(BOOKMARK_PERIOD_MS, () => this.sendBookmark());
  }

  private run(telling: () => Promise<void>): void {
    telling().catch((error: unknown) => {
      const refusal = refusalOf(error);
      if (refusal.reason === 'INTERNAL') this.context.onDefect(error);
      this.finish(() => this.call.fail(refusal));
    });
  }

  private endWell(): void {
    this.finish(() => this.call.end());
  }

  private cutOff(): void {
    const refusal = refuse('SLOW_READER', 'the stream was read too slowly; resume from the cursor', {
      cursor: this.taken,
    });
    this.finish(() => this.call.fail(refusal));
  }

  private finish(how: () => void): void {
    if (this.over) return;
    this.over = true;
    this.unfollow();
    this.bookmark?.cancel();
    this.wake?.();
    how();
  }

  private cursor(eventNumber: number): string {
    return this.context.tokens.give(this.where.purpose, String(eventNumber));
  }
}

function foreignCursor(): ReturnType<typeof refuse> {
  return refuse('CURSOR_INVALID', 'cursor: lies beyond the history of this task', { field: 'cursor' });
}
