/**
 * The works that wait for a batch, in the order in which they are to be judged: what must not wait first, then what a
 * batch put off, then the rest as it came. Bounded in number and in weight; a batch takes a bounded part of it.
 */
import { type Refusal, refuse } from '../kernel/refusal.js';
import { MAX_PLANS_PER_BATCH } from '../store/commit-plan.js';
import type { Work } from './work.js';

/** Works waiting for a batch; beyond it callers are told OVERLOADED. */
export const MAX_WAITING_WORKS = 32_768;
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** A batch ends when its works weigh so much, so that what comes next does not wait for all that is waiting. */
export const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Works judged into one batch; leaves room for the claims that follow from them. */
const MAX_WORKS_PER_BATCH = MAX_PLANS_PER_BATCH / 2;
const OVERLOAD_RETRY_MS = 250;

export interface Waiting {
  readonly work: Work;
  readonly judgements: number;
}

export class WaitingWorks {
  private waiting: Waiting[] = [];
  private urgent: Waiting[] = [];
  private waitingBytes = 0;
  /** Works of the batch in the making that the next one judges first: what came after them stays behind them. */
  private postponed: Waiting[] = [];

  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.urgent.length === 0;
  }

  hasRoomFor(work: Work): boolean {
    return this.waiting.length < MAX_WAITING_WORKS && this.waitingBytes + work.weightBytes <= MAX_WAITING_BYTES;
  }

  add(work: Work, judgements: number): void {
    (work.urgent === true ? this.urgent : this.waiting).push({ work, judgements });
    this.waitingBytes += work.weightBytes;
  }

  /** The batch in the making cannot take it; `putPostponedFirst` puts it in front once that batch is judged. */
  postpone(work: Work, judgements: number): void {
    this.postponed.push({ work, judgements });
  }

  putPostponedFirst(): void {
    if (this.postponed.length === 0) return;
    this.waitingBytes += weightOf(this.postponed);
    this.waiting = [...this.postponed, ...this.waiting];
    this.postponed = [];
  }

  /** What comes first, as much as one batch may hold in number and in weight, and at least one work. */
  take(): Waiting[] {
    if (this.waiting.length + this.urgent.length <= MAX_WORKS_PER_BATCH && this.waitingBytes <= MAX_BATCH_BYTES) {
      return this.takeAll();
    }
    const taken = this.urgent.splice(0, MAX_WORKS_PER_BATCH);
    let bytes = weightOf(taken);
    let count = 0;
    for (const { work } of this.waiting) {
      if (taken.length + count === MAX_WORKS_PER_BATCH) break;
      if (taken.length + count > 0 && bytes + work.weightBytes > MAX_BATCH_BYTES) break;
      bytes += work.weightBytes;
      count += 1;
    }
    this.waitingBytes -= bytes;
    return [...taken, ...this.waiting.splice(0, count)];
  }

  takeAll(): Waiting[] {
    const all = this.urgent.length === 0 ? this.waiting : [...this.urgent, ...this.waiting];
    this.waiting = [];
    this.urgent = [];
    this.waitingBytes = 0;
    return all;
  }
}

/** There is no room for a work. */
export function overloaded(): Refusal {
  return refuse('OVERLOADED', 'too much is waiting to be committed; retry after the delay given', {
    resource: 'commits',
    retry_after_ms: String(OVERLOAD_RETRY_MS),
  });
}

function weightOf(works: readonly Waiting[]): number {
  return works.reduce((bytes, { work }) => bytes + work.weightBytes, 0);
}
