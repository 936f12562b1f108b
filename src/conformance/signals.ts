/**
 * Waiting for what a worker does, without looking at a clock: a wait ends when what it looks for is there, when the
 * case is lost anyway, or when the case's time is up. Only `quiet` waits for time, because silence has no signal.
 */
import { CaseFailure } from './case.js';

interface Wait {
  /** Resolves the wait if it can. */
  readonly look: () => boolean;
  readonly reject: (error: Error) => void;
  readonly what: string;
}

export class Signals {
  private readonly waits = new Set<Wait>();
  private failure: Error | null = null;

  /** Something happened: whoever waits looks again. */
  changed(): void {
    for (const wait of [...this.waits]) if (wait.look()) this.waits.delete(wait);
  }

  /** The case is lost; the first reason stays. */
  fail(message: string): void {
    if (this.failure !== null) return;
    this.failure = new CaseFailure(message);
    this.rejectAll(() => message);
  }

  timeUp(limitMs: number): void {
    if (this.failure !== null) return;
    const message = (what: string) => `waited ${limitMs / 1_000} s for ${what}`;
    this.failure = new CaseFailure(message('its end'));
    this.rejectAll(message);
  }

  /** @throws CaseFailure when the case is lost. */
  check(): void {
    if (this.failure !== null) throw this.failure;
  }

  /** Resolves with the first thing that `find` finds. `what` completes the sentence "waited for …". */
  until<T>(find: () => T | undefined, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) return reject(this.failure);
      const look = () => {
        const found = find();
        if (found !== undefined) resolve(found);
        return found !== undefined;
      };
      if (!look()) this.waits.add({ look, reject, what });
    });
  }

  /** So long the worker has the opportunity to do what it must not. */
  async quiet(ms: number): Promise<void> {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      this.changed();
    }, ms);
    try {
      await this.until(() => (isOver ? true : undefined), 'the end of a quiet time');
    } finally {
      clearTimeout(timer);
    }
  }

  private rejectAll(message: (what: string) => string): void {
    for (const { reject, what } of this.waits) reject(new CaseFailure(message(what)));
    this.waits.clear();
  }
}
