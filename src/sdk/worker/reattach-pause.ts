/**
 * How long a worker waits before its next stream. A Welcome alone is no success: who is refused right after it would
 * come back without a pause, for ever. But a wire that breaks a few times is no reason to keep a task waiting.
 */
import { status } from '@grpc/grpc-js';
import { Backoff } from '../transport/backoff.js';
import type { ReeveError } from '../transport/reeve-error.js';
import { mayBeForWhatWasSaid } from './refused-events.js';

export interface EndedStream {
  readonly ending: ReeveError;
  /** Since its Welcome; null when there was none. */
  readonly livedMs: number | null;
  /** Something of what was said before it ended was judged. */
  readonly tookWords: boolean;
}

/** What has lasted so long, ms, was no failure: longer than any pause. */
export const LASTING_MS = 10_000;
/** Welcomed streams in a row that broke before they were of any use; more of them are no mishap. */
const BREAKS_FORGIVEN = 10;

export class ReattachPause {
  private breaks = 0;

  constructor(private readonly backoff = new Backoff({ initialMs: 100, maximumMs: 5_000 })) {}

  /** Ms. */
  after(stream: EndedStream): number {
    if (this.wasOfUse(stream)) {
      this.breaks = 0;
      this.backoff.reset();
    } else if (stream.livedMs !== null && isOfTheWire(stream.ending)) {
      this.breaks += 1;
      if (this.breaks <= BREAKS_FORGIVEN) this.backoff.reset();
    }
    return this.backoff.next(stream.ending.retryAfterMs);
  }

  private wasOfUse({ ending, livedMs, tookWords }: EndedStream): boolean {
    return (livedMs !== null && livedMs >= LASTING_MS) || (tookWords && !mayBeForWhatWasSaid(ending));
  }
}

/** Reeve names its reasons; without one it is the wire that broke. */
function isOfTheWire({ code, reason }: ReeveError): boolean {
  return code === status.UNAVAILABLE && reason === status[code];
}
