// A work stream that writes down what it was given, in order, and can be told to take nothing more.

import type { CancelNotice, DeliveredClaim, LeaseLoss, WorkSink } from '../../src/dispatcher/work-sink.js';

export type Frame =
  | { readonly kind: 'claims'; readonly claims: readonly DeliveredClaim[] }
  | { readonly kind: 'cancels'; readonly cancels: readonly CancelNotice[] }
  | { readonly kind: 'lost'; readonly losses: readonly LeaseLoss[] }
  | { readonly kind: 'drain' }
  | { readonly kind: 'close'; readonly why: string };

export class RecordingSink implements WorkSink {
  readonly frames: Frame[] = [];
  /** False: the stream takes nothing more, and says so. */
  open = true;
  /** Told of every frame that was taken. */
  onFrame: (frame: Frame) => void = () => undefined;

  get claimed(): DeliveredClaim[] {
    return this.frames.flatMap((frame) => (frame.kind === 'claims' ? frame.claims : []));
  }

  get claimedIds(): string[] {
    return this.claimed.map(({ record }) => record.admission.taskId);
  }

  get cancelled(): CancelNotice[] {
    return this.frames.flatMap((frame) => (frame.kind === 'cancels' ? frame.cancels : []));
  }

  get lost(): LeaseLoss[] {
    return this.frames.flatMap((frame) => (frame.kind === 'lost' ? frame.losses : []));
  }

  get closed(): string | null {
    const frame = this.frames.find((candidate) => candidate.kind === 'close');
    return frame?.kind === 'close' ? frame.why : null;
  }

  claims(claims: readonly DeliveredClaim[]): boolean {
    return this.take({ kind: 'claims', claims });
  }

  cancels(cancels: readonly CancelNotice[]): boolean {
    return this.take({ kind: 'cancels', cancels });
  }

  leasesLost(losses: readonly LeaseLoss[]): boolean {
    return this.take({ kind: 'lost', losses });
  }

  drain(): boolean {
    return this.take({ kind: 'drain' });
  }

  close(why: string): void {
    this.frames.push({ kind: 'close', why });
    this.open = false;
  }

  private take(frame: Frame): boolean {
    if (!this.open) return false;
    this.frames.push(frame);
    this.onFrame(frame);
    return true;
  }
}
