// Waiting for what is already on its way, without a clock: a memory store and the committer need nothing but turns of
// the event loop, so a test that has let those pass has seen everything that can happen at this moment.

/** More than any chain of promises and immediates between a call and its last effect takes. */
const ROUNDS = 12;

/** Lets everything happen that needs no time. Not for stores with threads or sockets: wait on their answers. */
export async function turns(rounds = ROUNDS): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A promise with its ends in hand. */
export class Signal<Value = void> {
  readonly reached: Promise<Value>;
  private resolve!: (value: Value) => void;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  reach(value: Value): void {
    this.resolve(value);
  }
}

/** Turns until it holds; fails when it does not come to hold without time passing. */
export async function until(holds: () => boolean, what = 'what was waited for'): Promise<void> {
  for (let round = 0; round < 50_000; round++) {
    if (holds()) return;
    await turns(1);
  }
  throw new Error(`${what} never came`);
}
