// Tasks brought into a state through the server alone: submitted, held by a worker, settled.

import type { MessageInitShape } from '@bufbuild/protobuf';
import type { SubmitRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { Claim, HelloSchema, WorkerEventSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { ExecutionTarget, type Task } from '../../src/gen/reeve/v1/task_pb.js';
import { type Duplex, type ReeveClient, tasks, workers } from './reeve-client.js';
import { freshKey } from './server-fixture.js';

export type Event = Exclude<MessageInitShape<typeof WorkerEventSchema>['event'], undefined>;

export async function submitted(
  client: ReeveClient,
  more: MessageInitShape<typeof SubmitRequestSchema> = {},
): Promise<Task> {
  const request = { idempotencyKey: freshKey(), actionKind: 'agent', executionTarget: ExecutionTarget.HOST, ...more };
  const { task } = await client.unary(tasks.submit, request);
  if (task === undefined) throw new Error('an answer without its task');
  return task;
}

/** A worker on a queue of its own, so that tests do not take each other's tasks. */
export class Worker {
  readonly queue = freshKey('queue');
  private frames = 1n;

  private constructor(readonly stream: Duplex<typeof workers.work>) {}

  static async start(client: ReeveClient, hello: MessageInitShape<typeof HelloSchema> = {}): Promise<Worker> {
    const worker = new Worker(client.bidi(workers.work));
    const value = { workerName: 'worker', actionKinds: ['*'], slots: 10, queues: [worker.queue], ...hello };
    worker.stream.send({ frameId: 1n, frame: { case: 'hello', value } });
    const first = await worker.stream.next();
    if (first?.frame.case !== 'welcome') throw new Error(`no welcome but ${String(first?.frame.case)}`);
    return worker;
  }

  /** The next frame of a kind; others before it are passed over. */
  async frame<Case extends Frame['case']>(kind: Case): Promise<ContentOf<Case>> {
    for (;;) {
      const next = await this.stream.next();
      if (next === undefined) throw new Error(`the stream ended before ${kind}`);
      if (next.frame.case === kind) return next.frame.value as ContentOf<Case>;
    }
  }

  async claim(): Promise<Claim> {
    const { claims } = await this.frame('claims');
    const claim = claims[0];
    if (claim === undefined) throw new Error('an empty list of claims');
    return claim;
  }

  send(frame: Exclude<Parameters<Duplex<typeof workers.work>['send']>[0]['frame'], undefined>): bigint {
    this.frames += 1n;
    this.stream.send({ frameId: this.frames, frame });
    return this.frames;
  }

  /** Says events of a claim, numbered from `from`; resolves with the verdict on it. */
  async say(claim: Claim, events: readonly Event[], from = 1) {
    const { taskId, generation, epoch } = claim;
    const numbered = events.map((event, index) => ({
      taskId,
      generation,
      epoch,
      eventSeq: BigInt(from + index),
      event,
    }));
    this.send({ case: 'events', value: { events: numbered } });
    const { verdicts } = await this.frame('verdicts');
    const verdict = verdicts.find((one) => one.taskId === taskId);
    if (verdict === undefined) throw new Error('no verdict on the claim');
    return verdict;
  }

  stop(): void {
    this.stream.half();
  }
}

type Frame = Exclude<
  Exclude<Awaited<ReturnType<Duplex<typeof workers.work>['next']>>, undefined>['frame'],
  { readonly case: undefined }
>;

type ContentOf<Case> = Frame extends infer One
  ? One extends { readonly case: Case; readonly value: infer Content }
    ? Content
    : never
  : never;

export const accepted: Event = { case: 'accepted', value: {} };
export const started: Event = { case: 'started', value: {} };
export const completed: Event = { case: 'completed', value: { resultJson: '{"ok":true}' } };

/** A task that a worker holds and has started. */
export async function running(
  client: ReeveClient,
  more: MessageInitShape<typeof SubmitRequestSchema> = {},
): Promise<{ readonly task: Task; readonly worker: Worker; readonly claim: Claim }> {
  const worker = await Worker.start(client);
  const task = await submitted(client, { queue: worker.queue, ...more });
  const claim = await worker.claim();
  await worker.say(claim, [accepted, started]);
  return { task, worker, claim };
}
