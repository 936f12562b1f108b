// A worker that says what it likes, frame by frame, and everything it is answered, as short words; beside it a victim
// with a claim of its own and a bystander, which must not notice anything.

import { expect } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import {
  type Claim,
  LeaseLossCause,
  type WorkResponse,
  type WorkerEvents,
} from '../../src/gen/reeve/v1/worker_service_pb.js';
import { accepted, type Event, started, Worker } from '../server/lifecycle-driver.js';
import { refusedOf } from '../server/reeve-client.js';
import { FaultRig } from './fault-rig.js';
import type { SdkWorker } from './sdk-worker.js';

export type Frame = Parameters<Worker['send']>[0];

/** What one frame tells, without what differs from run to run. */
function wordsOf({ frame }: WorkResponse): string[] {
  switch (frame.case) {
    case 'rejection':
      return [`refused: ${reasonOf(frame.value.refusal)}`];
    case 'verdicts':
      return frame.value.verdicts.flatMap(({ judgedThrough, rejected }) => [
        ...rejected.map(({ eventSeq, refusal }) => `event ${eventSeq}: ${reasonOf(refusal)}`),
        `through ${judgedThrough}`,
      ]);
    case 'leasesLost':
      return frame.value.losses.map(({ cause }) => `lost: ${LeaseLossCause[cause]}`);
    default:
      return [String(frame.case)];
  }
}

function reasonOf(refusal: { reason: ErrorReason; metadata: Record<string, string> } | undefined): string {
  const field = refusal?.metadata['field'];
  return `${ErrorReason[refusal?.reason ?? 0]}${field === undefined ? '' : ` ${field}`}`;
}

export class HostileRig {
  /** Tasks that must end as if nobody had been there. */
  private constructor(
    readonly rig: FaultRig,
    private readonly bystander: SdkWorker,
  ) {}

  static async open(): Promise<HostileRig> {
    const rig = await FaultRig.open('--drain-grace', '1s', '--keepalive', '2s');
    const bystander = await rig.worker('bystander', { handlers: { agent: () => ({ ok: true }) } });
    return new HostileRig(rig, bystander);
  }

  /** A worker with a claim that it has started, events 1 and 2. */
  async holder(
    hello: Parameters<typeof Worker.start>[1] = {},
  ): Promise<{ readonly worker: Worker; readonly claim: Claim }> {
    const worker = await Worker.start(this.rig.raw(), hello);
    await this.rig.submit(worker.queue);
    const claim = await worker.claim();
    await worker.say(claim, [accepted, started]);
    return { worker, claim };
  }

  /** Says frames and then a heartbeat; all that was answered before that was. */
  async answersTo(worker: Worker, ...frames: readonly Frame[]): Promise<string[]> {
    for (const frame of frames) worker.send(frame);
    const beat = worker.send({ case: 'heartbeat', value: { held: [] } });
    const words: string[] = [];
    for (;;) {
      const next = await worker.stream.next();
      if (next === undefined) return [...words, `ended: ${refusedOf(await worker.stream.ended).reason}`];
      if (next.frame.case === 'heartbeat' && next.frame.value.heartbeatFrameId === beat) return words;
      words.push(...wordsOf(next));
    }
  }

  /** The server is alive, somebody else's task goes through, and the victim still holds what it held. */
  async othersAreWell(victim?: { readonly worker: Worker; readonly claim: Claim }): Promise<void> {
    expect(this.rig.server.alive).toBe(true);
    const id = await this.rig.submit('bystander');
    expect(await this.rig.reeve.result(id)).toMatchObject({ status: 'completed', attempt: 1 });
    expect(this.bystander.notices.all.map(({ type }) => type)).toEqual(['attached']);
    if (victim === undefined) return;
    const { taskId, epoch } = victim.claim;
    const { status, lease, lastEventNumber } = await this.rig.reeve.get(taskId);
    expect([status, lease?.epoch, lastEventNumber]).toEqual(['running', Number(epoch), 4]);
  }

  /** The log has nothing to complain of, and every history is sound. */
  async close(): Promise<void> {
    await this.rig.close();
  }
}

/** A frame of events about a claim, with any of its parts replaced. */
export function eventsOf(
  { taskId, generation, epoch }: Pick<Claim, 'taskId' | 'generation' | 'epoch'>,
  ...events: readonly (readonly [bigint | number, Event | { case: undefined }])[]
): Frame {
  const value = {
    events: events.map(([seq, event]) => ({ taskId, generation, epoch, eventSeq: BigInt(seq), event })),
  } satisfies { events: Partial<WorkerEvents['events'][number]>[] | object[] };
  return { case: 'events', value };
}
