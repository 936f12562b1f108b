// One direction of one proxied connection: bytes taken from one socket and given to the other, with what a test does
// to them on the way. Takes no more than the other side does, so that a slow reader is felt by the writer.

import type { Socket } from 'node:net';

/** Bytes held back before nothing more is read; the rest waits in the sockets, as it would without a proxy. */
const MAX_HELD_BYTES = 1_048_576;

interface Held {
  /** Null: the end of the direction. */
  readonly bytes: Buffer | null;
  readonly dueAtMs: number;
}

export interface FlowListener {
  /** Told of bytes before they go on; returns how many of them may, and whether the connection then ends. */
  pass(count: number): { readonly allowed: number; readonly last: boolean };
  limitReached(): void;
}

export class Flow {
  delayMs = 0;
  /** Everything that comes is lost, the end too, and nobody is told. */
  dropping = false;
  private frozen = false;
  private held: Held[] = [];
  private heldBytes = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly from: Socket,
    private readonly to: Socket,
    private readonly listener: FlowListener,
  ) {
    from.on('data', (bytes: Buffer) => this.take(bytes));
    from.on('end', () => this.take(null));
    to.on('drain', () => this.pump());
    from.resume();
  }

  freeze(): void {
    this.frozen = true;
    this.readIfRoom();
  }

  thaw(): void {
    this.frozen = false;
    this.pump();
  }

  drop(): void {
    this.dropping = true;
    this.held = [];
    this.heldBytes = 0;
    this.from.resume();
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.held = [];
  }

  private take(bytes: Buffer | null): void {
    if (this.dropping) return;
    this.held.push({ bytes, dueAtMs: performance.now() + this.delayMs });
    this.heldBytes += bytes?.length ?? 0;
    this.pump();
  }

  private pump(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (!this.frozen && !this.to.writableNeedDrain) {
      const next = this.held[0];
      if (next === undefined) break;
      const waitMs = next.dueAtMs - performance.now();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.pump(), waitMs);
        break;
      }
      this.held.shift();
      this.give(next.bytes);
    }
    this.readIfRoom();
  }

  private give(bytes: Buffer | null): void {
    if (bytes === null) return void this.to.end();
    this.heldBytes -= bytes.length;
    const { allowed, last } = this.listener.pass(bytes.length);
    // Only what is written is ended: a reset that comes before it would go unnoticed behind a FIN.
    this.to.write(bytes.subarray(0, allowed), () => (last ? this.listener.limitReached() : undefined));
  }

  private readIfRoom(): void {
    if (this.dropping) return;
    if (this.heldBytes > MAX_HELD_BYTES || this.frozen) this.from.pause();
    else this.from.resume();
  }
}
