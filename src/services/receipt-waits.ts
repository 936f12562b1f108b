/**
 * Waiting for a receipt of a cancellation: delivered, acknowledged, settled (lifecycle.md section 6).
 * Ends when the receipt or a later one is in, when patience runs out, or when the caller goes away; never an error.
 */
import type { Authority } from '../authority/authority.js';
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import type { Receipt } from '../wire/enum-tables.js';
import type { TaskFeed } from './task-feed.js';

export class ReceiptWaits {
  constructor(
    private readonly authority: Authority,
    private readonly feed: TaskFeed,
  ) {}

  /** The record as it is when the wait is over. `record` is what the caller knows; the wait is for its generation. */
  async until(
    record: TaskRecord,
    generation: number,
    receipt: Receipt,
    patienceMs: number,
    signal: AbortSignal,
  ): Promise<TaskRecord> {
    const { taskId } = record.admission;
    let latest = record;
    let stop = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      const timer = this.authority.clock.after(patienceMs, resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      const unfollow = this.feed.follow(taskId, (commit) => {
        if (commit.record.lastEvent > latest.lastEvent) latest = commit.record;
        if (isIn(latest, generation, receipt)) resolve();
      });
      stop = () => {
        timer.cancel();
        unfollow();
      };
    });
    try {
      // What was committed between the caller's look and the start of following is not told by the feed.
      const read = await this.authority.reads.get(taskId);
      if (read.ok && read.value.lastEvent > latest.lastEvent) latest = read.value;
      if (!isIn(latest, generation, receipt) && !signal.aborted) await over;
      return latest;
    } finally {
      stop();
    }
  }
}

function isIn(record: TaskRecord, generation: number, receipt: Receipt): boolean {
  if (record.generation !== generation || isTerminal(record.status)) return true;
  const { cancellation } = record;
  switch (receipt) {
    case 'delivered':
      return wasAt(cancellation?.deliveredAt) || wasAt(cancellation?.acknowledgedAt);
    case 'acknowledged':
      return wasAt(cancellation?.acknowledgedAt);
    case 'settled':
      return false;
  }
}

function wasAt(time: number | null | undefined): boolean {
  return typeof time === 'number';
}
