/**
 * Watch: replay, then live (lifecycle.md section 9, promise C8): no gap, no duplicate within a stream, in order; that of
 * one task ends OK once its current generation is over and told. A reader may be slow in the replay, which is read as
 * it is taken; live no event is handed over beyond 1 MiB unread, and the next commit then finds a slow reader and cuts
 * it, with a cursor it can resume from. What is followed is the source's; this file owns the stream.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import type { WatchRequestSchema, WatchResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { refuse } from '../kernel/refusal.js';
import type { Timer } from '../lib/clock.js';
import type { CursorMint } from '../wire/cursor.js';
import { eventMessage } from '../wire/event-codec.js';
import { toTimestamp } from '../wire/time-values.js';
import type { ServerStreamHandler, StreamCall } from './call.js';
import { refusalOf } from './failures.js';
import type { TaskFeed } from './task-feed.js';
import { sourceOf } from './watch-request.js';
import { REPLAY_PAGE_BYTES, type Told, type WatchSource, lastSequenceOf } from './watch-source.js';

/** What a live reader may leave unread before it is cut. */
export const MAX_UNREAD_BYTES = 1_048_576;
/** Keeps idle streams and the proxies between alive. */
export const BOOKMARK_PERIOD_MS = 15_000;

export interface WatchContext {
  readonly authority: Authority;
  readonly feed: TaskFeed;
  readonly cursors: CursorMint;
  readonly onDefect: (error: unknown) => void;
}

type Call = StreamCall<typeof WatchResponseSchema>;

export function watchHandler(
  context: WatchContext,
): ServerStreamHandler<typeof WatchRequestSchema, typeof WatchResponseSchema> {
  return (request, call) => {
    const watch = new Watch(context, call, sourceOf(request, context), request.aepOnly);
    watch.begin();
    return watch;
  };
}

class Watch {
  private readonly unfollow: () => void;
  /** The last sequence that was heard of, told or not. */
  private heard = 0;
  private live = false;
  private caughtUp = false;
  private over = false;
  private wake: (() => void) | null = null;
  private bookmark: Timer | null = null;
  /** Where the last event that the transport has taken leaves the reader. */
  private taken: string;

  constructor(
    private readonly context: WatchContext,
    private readonly call: Call,
    private readonly source: WatchSource,
    private readonly aepOnly: boolean,
  ) {
    this.taken = this.cursor();
    this.unfollow = source.follow(context.feed, (commit) => this.committed(commit));
  }

  begin(): void {
    this.run(async () => {
      await this.source.open();
      this.taken = this.cursor();
      this.armBookmark();
      await this.replay();
    });
  }

  drained(): void {
    this.wake?.();
  }

  closed(): void {
    this.finish(() => undefined);
  }

  /** Reads on as fast as it is taken, until nothing is left that was committed before it looked. */
  private async replay(): Promise<void> {
    const { source } = this;
    for (;;) {
      const page = await source.read();
      if (this.over) return;
      for (const told of page.items) this.tell(told);
      source.passedAll(page);
      if (page.items.length > 0) await this.taking();
      else if (!page.more && this.heard <= source.sequence) break;
      if (this.over) return;
    }
    this.live = true;
    if (source.isOver) return this.endWell();
    // Once: whoever comes back to it has been told before that it is complete.
    if (!this.caughtUp) this.sendBookmark();
    this.caughtUp = true;
  }

  private committed(commit: Committed): void {
    this.heard = lastSequenceOf(commit);
    if (!this.live || this.over) return;
    const heard = this.source.hear(commit);
    if (heard === null) return this.goBack();
    // Looked at before this commit is sent, so that one large commit never cuts a reader who keeps up.
    if (heard.length > 0 && this.call.pendingBytes > MAX_UNREAD_BYTES) return this.cutOff();
    for (const told of heard) {
      // The rest of a commit that is larger than what is held is read from the history, as it is taken.
      if (this.call.pendingBytes > MAX_UNREAD_BYTES) return this.goBack();
      this.tell(told);
    }
    this.source.passedAll(commit);
    if (this.source.isOver) this.endWell();
  }

  private goBack(): void {
    this.live = false;
    this.run(async () => {
      await this.taking();
      if (!this.over) await this.replay();
    });
  }

  private tell(told: Told): void {
    const { admission, event } = told;
    this.source.passed(told);
    if (this.aepOnly && event.aep === null) return;
    const cursor = this.cursor();
    this.call.send({ cursor, item: { case: 'event', value: eventMessage(admission, told) } }, () => {
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
    const time = toTimestamp(this.context.authority.now());
    const value = { sequence: BigInt(this.source.sequence), time };
    const cursor = this.cursor();
    this.call.send({ cursor, item: { case: 'bookmark', value } }, () => {
      this.taken = cursor;
    });
    this.armBookmark();
  }

  /** A stream whose reader has not taken what it has needs no sign of life. */
  private idled(): void {
    if (this.call.pendingBytes === 0) this.sendBookmark();
    else this.armBookmark();
  }

  private armBookmark(): void {
    if (this.over) return;
    this.bookmark?.cancel();
    this.bookmark = this.context.authority.clock.after(BOOKMARK_PERIOD_MS, () => this.idled());
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

  private cursor(): string {
    return this.context.cursors.give(this.source.purpose, this.source.position);
  }
}
