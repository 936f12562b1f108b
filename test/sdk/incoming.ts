/**
 * What arrives, in order, for whoever waits for it: tests wait on this and never on time.
 */

export class Incoming<T> {
  /** Everything that ever came. */
  readonly all: T[] = [];
  private taken = 0;
  private waiting: (() => void)[] = [];

  push(item: T): void {
    this.all.push(item);
    for (const wake of this.waiting.splice(0)) wake();
  }

  /** Come and not yet taken. */
  get pending(): readonly T[] {
    return this.all.slice(this.taken);
  }

  /** The next one that was not taken. */
  async next(): Promise<T> {
    for (;;) {
      const item = this.all[this.taken];
      if (item !== undefined) {
        this.taken += 1;
        return item;
      }
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  /** The next one that fits; others on the way are passed over. */
  async find<S extends T>(fits: (item: T) => item is S): Promise<S>;
  async find(fits: (item: T) => boolean): Promise<T>;
  async find(fits: (item: T) => boolean): Promise<T> {
    for (;;) {
      const item = await this.next();
      if (fits(item)) return item;
    }
  }
}
