// Chance from a seed: the same seed gives the same run, ids included.

import type { Random } from '../../src/lib/random.js';

export class SeededRandom implements Random {
  private state: number;
  private ids = 0;

  constructor(readonly seed: number) {
    this.state = seed >>> 0;
  }

  /** mulberry32. */
  chance(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.chance() * bound);
  }

  pick<Value>(values: readonly Value[]): Value {
    const value = values[this.below(values.length)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  }

  uuidV7(): string {
    this.ids += 1;
    const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
    return `${hex(this.ids, 8)}-${hex(this.seed & 0xffff, 4)}-7000-8000-${hex(this.below(2 ** 32), 12)}`;
  }

  token(bytes: number): string {
    let text = '';
    while (text.length < bytes) text += this.below(2 ** 32).toString(36);
    return text.slice(0, Math.max(bytes, 8)) + String(this.ids++);
  }
}
