/**
 * Every event that a worker said, over all its streams, and what holds for events in every case: numbers without
 * gaps, the same number for the same event, nothing about a claim that is no longer the worker's.
 */
import { createHash } from 'node:crypto';
import { toBinary } from '@bufbuild/protobuf';
import { type WorkerEvent, WorkerEventSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { OfferedClaim } from './offered-claim.js';

export type EventWord = Exclude<WorkerEvent['event']['case'], undefined>;
export type Saying<Word extends EventWord = EventWord> = Extract<WorkerEvent['event'], { case: Word }>;

/** Those after which a claim has ended. */
const ENDINGS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'timedOut', 'suspended']);

interface Entry {
  readonly claim: OfferedClaim;
  readonly said: Saying[];
  readonly digests: string[];
  /** Why nothing more may be said; null while it may. */
  over: string | null;
}

export class EventLedger {
  private readonly entries = new Map<string, Entry>();

  offered(claim: OfferedClaim): void {
    const key = keyOf(claim.taskId, claim.epoch);
    if (!this.entries.has(key)) this.entries.set(key, { claim, said: [], digests: [], over: null });
  }

  /** From now on the worker has to be silent about it. */
  over(claim: OfferedClaim, why: string): void {
    this.entry(claim).over = why;
  }

  /** The events of one claim, each once, by number from 1. */
  said(claim: OfferedClaim): readonly Saying[] {
    return this.entry(claim).said;
  }

  count(claim: OfferedClaim, word: EventWord): number {
    return this.said(claim).filter((saying) => saying.case === word).length;
  }

  endings(claim: OfferedClaim): readonly string[] {
    return this.said(claim).flatMap((saying) => (ENDINGS.has(saying.case) ? [saying.case] : []));
  }

  /** What is wrong with the event; null when nothing is. */
  hear(event: WorkerEvent): string | null {
    const { taskId, epoch, generation, eventSeq, event: saying } = event;
    const what = `${saying.case ?? 'an event without content'} number ${eventSeq} of ${taskId}, epoch ${epoch}`;
    const entry = this.entries.get(keyOf(taskId, epoch));
    if (entry === undefined) return `${what}: that claim was never offered`;
    if (entry.over !== null) return `${what}: nothing more is to be said, ${entry.over}`;
    if (saying.case === undefined) return what;
    if (generation !== entry.claim.generation) return `${what}: the generation is ${entry.claim.generation}`;
    const seq = Number(eventSeq);
    const digest = createHash('sha256').update(toBinary(WorkerEventSchema, event)).digest('base64');
    if (seq > entry.said.length + 1 || seq < 1) return `${what}: the next number is ${entry.said.length + 1}`;
    if (seq <= entry.said.length) {
      return entry.digests[seq - 1] === digest ? null : `${what}: that number was given to another event before`;
    }
    if (seq === 1 && saying.case !== 'accepted') return `${what}: the first word is accepted`;
    entry.said.push(saying);
    entry.digests.push(digest);
    return null;
  }

  private entry({ taskId, epoch }: OfferedClaim): Entry {
    const entry = this.entries.get(keyOf(taskId, epoch));
    if (entry === undefined) throw new Error(`${taskId} was not offered`);
    return entry;
  }
}

function keyOf(taskId: string, epoch: bigint): string {
  return `${epoch} ${taskId}`;
}
