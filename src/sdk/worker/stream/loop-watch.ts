/**
 * The thread's knowledge of the loop that does the work: asked several times a second whether it answers, and now and
 * then what it holds. What is on its way to the loop counts as held until a list says otherwise: a handler may compute
 * on a claim that no list has named yet.
 */
import { claimRefs } from './frame-glance.js';
import type { HeldRef } from './link.js';
import type { WorkLoop } from './work-loop.js';

/** How often `look` is to be called, and the loop is asked. */
export const LOOK_MS = 250;
/** A list is asked for when the last one is so old, or so much has been passed on since. */
const LIST_AFTER_MS = 2_000;
const LIST_AFTER_BYTES = 262_144;

export class LoopWatch implements WorkLoop {
  private askedAt: number | null = null;
  private lookedAt = performance.now();
  private listedAt = Number.NEGATIVE_INFINITY;
  private listed: readonly HeldRef[] = [];
  /** Frames of Claims passed on before the list that was asked for last: it knows them. */
  private before: Uint8Array[] = [];
  private since: Uint8Array[] = [];
  private sinceBytes = 0;

  constructor(private readonly ask: (list: boolean) => void) {}

  get silentMs(): number {
    return this.askedAt === null ? 0 : performance.now() - this.askedAt;
  }

  /** Asks, if the last question is answered. */
  look(): void {
    const now = performance.now();
    const late = now - this.lookedAt > 4 * LOOK_MS;
    this.lookedAt = now;
    if (this.askedAt !== null) {
      // This thread was held up as well, so it was the whole process: nothing is known about the loop.
      if (late) this.askedAt = now;
      return;
    }
    const list = now - this.listedAt >= LIST_AFTER_MS || this.sinceBytes >= LIST_AFTER_BYTES;
    if (list) {
      this.before.push(...this.since);
      this.since = [];
      this.sinceBytes = 0;
    }
    this.askedAt = now;
    this.ask(list);
  }

  /** The answer; `held` where a list was asked for. Returns how long it took, ms. */
  answered(held: readonly HeldRef[] | null): number {
    const { silentMs } = this;
    this.askedAt = null;
    if (held !== null) {
      this.listed = held;
      this.listedAt = performance.now();
      this.before = [];
    }
    return silentMs;
  }

  passed(claims: Uint8Array): void {
    this.since.push(claims);
    this.sinceBytes += claims.length;
  }

  held(): readonly HeldRef[] {
    return [...this.listed, ...this.before.flatMap(claimRefs), ...this.since.flatMap(claimRefs)];
  }
}
