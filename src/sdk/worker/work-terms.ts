/**
 * The rules of the current session as Welcome states them, and how sure its leases are.
 */
import type { Welcome } from '../../gen/reeve/v1/worker_service_pb.js';
import { durationToMs, toDate } from '../transport/time.js';

const MIB = 1024 * 1024;

export class WorkTerms {
  ttlMs = 30_000;
  maxEventBytes = MIB;
  maxResultBytes = MIB;
  /** Per attempt. */
  maxOutputs = 10_000;
  /** Per attempt. */
  maxOutputBytes = 16 * MIB;
  /** The store's clock less this machine's, ms. Late by the way from there to here, never early. */
  clockOffsetMs = 0;
  /** Epoch ms by this machine's clock. */
  leaseSureUntilMs = 0;

  read(welcome: Welcome, helloSentAtMs: number): void {
    const { limits } = welcome;
    this.ttlMs = durationToMs(welcome.ttl) ?? this.ttlMs;
    this.maxEventBytes = positive(limits?.maxEventBytes) ?? this.maxEventBytes;
    this.maxResultBytes = positive(limits?.maxResultBytes) ?? this.maxResultBytes;
    this.maxOutputs = positive(limits?.maxOutputsPerAttempt) ?? this.maxOutputs;
    this.maxOutputBytes = positive(Number(limits?.maxOutputBytesPerAttempt ?? 0n)) ?? this.maxOutputBytes;
    const serverTime = toDate(welcome.serverTime);
    if (serverTime !== undefined) this.clockOffsetMs = serverTime.getTime() - Date.now();
    this.renew(helloSentAtMs);
  }

  /** @param sentAtMs when what renewed the session was sent. */
  renew(sentAtMs: number): void {
    this.leaseSureUntilMs = Math.max(this.leaseSureUntilMs, sentAtMs + this.ttlMs);
  }
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}
