/**
 * The server's side of one worker's stream, as tests script it: Welcome, claims, verdicts, and what the worker said.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type {
  ClaimSchema,
  Hello,
  RejectedEventSchema,
  WelcomeSchema,
  WorkerEvent,
  WorkRequest,
} from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { status } from '@grpc/grpc-js';
import type { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import type { FakeServer, WorkPeer } from './fake-server.js';

type Case = Exclude<WorkRequest['frame']['case'], undefined>;
type Frame<C extends Case> = Extract<WorkRequest['frame'], { case: C }>['value'];

export class ScriptedSession {
  private said: WorkerEvent[] = [];

  constructor(
    readonly peer: WorkPeer,
    readonly hello: Hello,
  ) {}

  /** The next stream that a worker opens, welcomed. Heartbeats are an hour apart unless the test says otherwise. */
  static async welcome(
    server: FakeServer,
    welcome: MessageInitShape<typeof WelcomeSchema> = {},
  ): Promise<ScriptedSession> {
    const peer = await server.works.next();
    const { frame } = await peer.frames.next();
    if (frame.case !== 'hello') throw new Error(`the first frame is ${frame.case}`);
    const session = new ScriptedSession(peer, frame.value);
    peer.send({
      frame: {
        case: 'welcome',
        value: {
          sessionId: 's1',
          sessionSecret: 'secret',
          sessionAlias: 'alias',
          attachment: 1n,
          ttl: durationFromMs(30_000),
          heartbeatInterval: durationFromMs(3_600_000),
          ...welcome,
        },
      },
    });
    return session;
  }

  claim(...claims: MessageInitShape<typeof ClaimSchema>[]): void {
    this.peer.send({ frame: { case: 'claims', value: { claims } } });
  }

  judge(taskId: string, judgedThrough: number, rejected: MessageInitShape<typeof RejectedEventSchema>[] = []): void {
    const verdicts = [{ taskId, epoch: 1n, judgedThrough: BigInt(judgedThrough), rejected }];
    this.peer.send({ frame: { case: 'verdicts', value: { verdicts } } });
  }

  cancel(taskId: string, summary = 'enough'): void {
    const reason = { code: 'run.cancelled.requested', summary };
    const cancels = [{ taskId, generation: 1, epoch: 1n, cancellationToken: `cancel-${taskId}`, reason }];
    this.peer.send({ frame: { case: 'cancels', value: { cancels } } });
  }

  lose(taskId: string, cause: number): void {
    this.peer.send({ frame: { case: 'leasesLost', value: { losses: [{ taskId, generation: 1, epoch: 1n, cause }] } } });
  }

  /** A frame of the worker's is refused as a whole. */
  reject(frameId: bigint, reason: ErrorReason, grpcCode: status): void {
    const refusal = { reason, grpcCode, retryAfter: durationFromMs(1) };
    this.peer.send({ frame: { case: 'rejection', value: { frameId, refusal } } });
  }

  /** The number of the next frame of this kind; others are passed over. */
  async frameId(kind: Case): Promise<bigint> {
    for (;;) {
      const { frameId, frame } = await this.peer.frames.next();
      if (frame.case === kind) return frameId;
    }
  }

  /** The next frame of this kind; others on the way are passed over, events among them kept. */
  async next<C extends Case>(kind: C): Promise<Frame<C>> {
    for (;;) {
      const { frame } = await this.peer.frames.next();
      if (frame.case === kind) return frame.value as Frame<C>;
      if (frame.case === 'events') this.said.push(...frame.value.events);
    }
  }

  /** The next event, whatever frame it comes in. */
  async event(): Promise<WorkerEvent> {
    while (this.said.length === 0) {
      const { frame } = await this.peer.frames.next();
      if (frame.case === 'events') this.said.push(...frame.value.events);
    }
    const [event] = this.said.splice(0, 1);
    if (event === undefined) throw new Error('no event');
    return event;
  }

  /** The next so many events as `1 accepted`, `2 started`, … */
  async events(count: number): Promise<string[]> {
    const words: string[] = [];
    while (words.length < count) {
      const { eventSeq, event } = await this.event();
      words.push(`${eventSeq} ${event.case}`);
    }
    return words;
  }
}

export function claimOf(
  taskId: string,
  more: MessageInitShape<typeof ClaimSchema> = {},
): MessageInitShape<typeof ClaimSchema> {
  return { taskId, epoch: 1n, generation: 1, attempt: 1, actionKind: 'agent', argsJson: '{"n":1}', ...more };
}
