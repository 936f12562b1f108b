/**
 * Saying again what the server refused for now: after its hint, with jittered back-off per kind of frame, and no more
 * often than a frame may be in vain. A new stream begins anew: its attach says everything once more anyway.
 */
import { Backoff } from '../transport/backoff.js';
import type { ReeveError } from '../transport/reeve-error.js';

export interface Repeat {
  readonly again: () => void;
  /** In a row; then it is left to the next attach, or to the end of the session. */
  readonly maxTimes: number;
}

interface Kind extends Repeat {
  readonly backoff: Backoff;
  times: number;
  timer: NodeJS.Timeout | null;
  lastAt: number;
}

const INITIAL_MS = 250;
const MAXIMUM_MS = 15_000;
/** After so much peace, ms, a refusal is the first one again. */
const FORGOTTEN_AFTER_MS = 2 * MAXIMUM_MS;

export class SayAgain<Name extends string> {
  private readonly kinds: ReadonlyMap<Name, Kind>;

  constructor(repeats: Readonly<Record<Name, Repeat>>) {
    const entries = Object.entries<Repeat>(repeats).map(([name, repeat]): [Name, Kind] => {
      const backoff = new Backoff({ initialMs: INITIAL_MS, maximumMs: MAXIMUM_MS });
      return [name as Name, { ...repeat, backoff, times: 0, timer: null, lastAt: Number.NEGATIVE_INFINITY }];
    });
    this.kinds = new Map(entries);
  }

  /** Whether it will be said again; further refusals until then change nothing. */
  refused(name: Name, error: ReeveError): boolean {
    const kind = this.kinds.get(name);
    if (kind === undefined) return false;
    if (kind.timer !== null) return true;
    const now = performance.now();
    if (now - kind.lastAt > FORGOTTEN_AFTER_MS) reset(kind);
    kind.lastAt = now;
    if (kind.times >= kind.maxTimes) return false;
    kind.times += 1;
    kind.timer = setTimeout(() => {
      kind.timer = null;
      kind.again();
    }, kind.backoff.next(error.retryAfterMs));
    return true;
  }

  /** The stream has ended, and what was refused on it with it. */
  reset(): void {
    for (const kind of this.kinds.values()) {
      if (kind.timer !== null) clearTimeout(kind.timer);
      kind.timer = null;
      reset(kind);
    }
  }
}

function reset(kind: Kind): void {
  kind.times = 0;
  kind.backoff.reset();
}
