/**
 * Finds the event for which a server refuses whole frames, or whole streams: neither says which one it was. Until it
 * is found, or nothing is left to say, one event travels at a time, and what is refused then is what was under way.
 */
import type { HeldClaim } from './held-claim.js';

/** A stream may also end by chance; so many with the same event under way did not. */
const STREAMS_PER_BLAME = 3;

export class OneByOne {
  /** Only one event may travel. */
  isOn = false;
  private underWay: { readonly held: HeldClaim; readonly seq: number } | null = null;

  /** Nothing may be sent before what is under way is answered. */
  get waits(): boolean {
    if (this.underWay === null) return false;
    const { held, seq } = this.underWay;
    return held.phase !== 'over' && !held.resting && held.answeredThrough < seq;
  }

  sent(held: HeldClaim, seq: number): void {
    this.underWay = { held, seq };
  }

  /** What was under way is sent again on the next stream. */
  streamEnded(): void {
    this.underWay = null;
  }

  finish(): void {
    this.isOn = false;
    this.underWay = null;
  }

  /**
   * A frame, or the stream, was refused for good. Returns the claim to blame; null while that is not known: what is
   * unanswered has to be said again, on a new stream, so that nothing on its way is mistaken for it.
   */
  blame(what: 'frame' | 'stream'): HeldClaim | null {
    const suspect = this.waits ? (this.underWay?.held ?? null) : null;
    this.isOn = true;
    // It is answered by the refusal: what takes its place may go.
    this.underWay = null;
    if (suspect === null || what === 'frame') return suspect;
    suspect.strikes += 1;
    return suspect.strikes >= STREAMS_PER_BLAME ? suspect : null;
  }
}
