/**
 * The kit's side of one welcomed stream. By itself it judges every event as accepted, answers heartbeats and ends a
 * stream that the worker has half-closed; a case takes over what it is about.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { ErrorReason } from '../gen/reeve/v1/error_reason_pb.js';
import type { ReceiptKind } from '../gen/reeve/v1/task_pb.js';
import { type Hello, LeaseLossCause, type WelcomeSchema, type WorkerEvent } from '../gen/reeve/v1/worker_service_pb.js';
import type { EventLedger } from './event-ledger.js';
import type { OfferedClaim } from './offered-claim.js';
import type { Signals } from './signals.js';
import type { FrameOf, FrameWord, WorkerFrame, WorkerStream } from './worker-stream.js';

export interface SessionTerms {
  readonly ttlMs?: number;
  readonly heartbeatMs?: number;
  /** The server's clock less that of this machine. */
  readonly clockOffsetMs?: number;
  readonly limits?: MessageInitShape<typeof WelcomeSchema>['limits'];
}

export interface SessionIdentity {
  readonly id: string;
  readonly secret: string;
  readonly attachment: number;
}

const DEFAULT_TTL_MS = 6_000;
const DEFAULT_HEARTBEAT_MS = 2_000;
export const ACCEPT_TIMEOUT_MS = 5_000;
const MIB = 1_048_576;

export class KitSession {
  answersHeartbeats = true;
  /** Claims that only the case judges. */
  private readonly withheld = new Set<OfferedClaim>();
  private readonly clockOffsetMs: number;

  constructor(
    readonly stream: WorkerStream,
    readonly hello: Hello,
    readonly identity: SessionIdentity,
    private readonly world: { readonly ledger: EventLedger; readonly signals: Signals },
    private readonly terms: SessionTerms,
  ) {
    this.clockOffsetMs = terms.clockOffsetMs ?? 0;
  }

  get isOver(): boolean {
    return this.stream.isOver;
  }

  get serverNowMs(): number {
    return Date.now() + this.clockOffsetMs;
  }

  welcome(kept: readonly [OfferedClaim, answeredThrough: number][], lost: readonly OfferedClaim[]): void {
    const { ttlMs = DEFAULT_TTL_MS, heartbeatMs = DEFAULT_HEARTBEAT_MS, limits } = this.terms;
    const { id: sessionId, secret: sessionSecret, attachment } = this.identity;
    this.stream.send({
      case: 'welcome',
      value: {
        sessionId,
        sessionSecret,
        attachment: BigInt(attachment),
        sessionAlias: `alias-of-${sessionId}`,
        ttl: durationFromMs(ttlMs),
        heartbeatInterval: durationFromMs(heartbeatMs),
        acceptTimeout: durationFromMs(ACCEPT_TIMEOUT_MS),
        serverTime: timestampFromMs(this.serverNowMs),
        limits: {
          maxFrameBytes: 1.5 * MIB,
          maxEventBytes: MIB,
          maxResultBytes: MIB,
          maxOutputsPerAttempt: 10_000,
          maxOutputBytesPerAttempt: BigInt(16 * MIB),
          ...limits,
        },
        leasesKept: kept.map(([{ taskId, epoch }, through]) => ({ taskId, epoch, answeredThrough: BigInt(through) })),
        leasesLost: lost.map(({ taskId, epoch, generation }) => ({
          taskId,
          epoch,
          generation,
          cause: LeaseLossCause.SUPERSEDED,
        })),
      },
    });
  }

  offer(...claims: readonly OfferedClaim[]): void {
    for (const claim of claims) this.world.ledger.offered(claim);
    this.stream.send({ case: 'claims', value: { claims: claims.map(({ message }) => message) } });
  }

  /** Its events get no verdict but those that the case gives. */
  withhold(claim: OfferedClaim): void {
    this.withheld.add(claim);
  }

  /** Everything of it from now on is judged by itself again. */
  judgeFreely(claim: OfferedClaim): void {
    this.withheld.delete(claim);
  }

  judge(
    { taskId, epoch }: OfferedClaim,
    through: number,
    refused?: { readonly seq: number; readonly why: ErrorReason },
  ) {
    const rejected = refused === undefined ? [] : [{ eventSeq: BigInt(refused.seq), refusal: refusalOf(refused.why) }];
    const verdict = { taskId, epoch, judgedThrough: BigInt(through), rejected };
    this.stream.send({ case: 'verdicts', value: { verdicts: [verdict] } });
  }

  cancel({ taskId, epoch, generation, cancellationToken }: OfferedClaim): void {
    const reason = { code: 'run.cancelled.user', summary: 'asked by the conformance kit' };
    this.stream.send({
      case: 'cancels',
      value: { cancels: [{ taskId, epoch, generation, cancellationToken, reason }] },
    });
  }

  lose({ taskId, epoch, generation }: OfferedClaim, cause: LeaseLossCause): void {
    this.stream.send({ case: 'leasesLost', value: { losses: [{ taskId, epoch, generation, cause }] } });
  }

  /** How many frames have been heard: where `frame` may begin to look. */
  get mark(): number {
    return this.stream.heard.length;
  }

  /** The first frame of the kind that fits, of those heard after `mark`. */
  frame<Word extends FrameWord>(
    word: Word,
    what: string,
    fits: (value: FrameOf<Word>) => boolean = () => true,
    mark = 0,
  ): Promise<FrameOf<Word>> {
    const find = () => this.heardOf(word, mark).find(fits);
    return this.world.signals.until(find, what);
  }

  heardOf<Word extends FrameWord>(word: Word, mark = 0): FrameOf<Word>[] {
    return this.stream.heard
      .slice(mark)
      .flatMap((frame) => (frame.case === word ? [frame.value as FrameOf<Word>] : []));
  }

  receipt({ taskId, epoch, cancellationToken }: OfferedClaim, kind: ReceiptKind, what: string) {
    return this.frame('cancelReceipts', what, ({ receipts }) =>
      receipts.some(
        (receipt) =>
          receipt.taskId === taskId &&
          receipt.epoch === epoch &&
          receipt.cancellationToken === cancellationToken &&
          receipt.kind === kind,
      ),
    );
  }

  /** The numbers of a claim's events on this stream, in the order they came. */
  numbersOf({ taskId, epoch }: OfferedClaim): number[] {
    const events = this.heardOf('events').flatMap((frame) => frame.events);
    return events
      .filter((event) => event.taskId === taskId && event.epoch === epoch)
      .map(({ eventSeq }) => Number(eventSeq));
  }

  /** What a server does by itself. */
  hear(frame: WorkerFrame, frameId: bigint): void {
    if (frame.case === 'events') this.judgeAll(frame.value.events);
    if (frame.case !== 'heartbeat' || !this.answersHeartbeats) return;
    const serverTime = timestampFromMs(this.serverNowMs);
    this.stream.send({ case: 'heartbeat', value: { heartbeatFrameId: frameId, serverTime } });
  }

  private judgeAll(events: readonly WorkerEvent[]): void {
    const through = new Map<string, { taskId: string; epoch: bigint; judgedThrough: bigint }>();
    for (const { taskId, epoch, eventSeq } of events) {
      if ([...this.withheld].some((claim) => claim.taskId === taskId && claim.epoch === epoch)) continue;
      through.set(`${epoch} ${taskId}`, { taskId, epoch, judgedThrough: eventSeq });
    }
    if (through.size > 0) this.stream.send({ case: 'verdicts', value: { verdicts: [...through.values()] } });
  }
}

export function refusalOf(reason: ErrorReason) {
  const isPassing = reason === ErrorReason.STORE_UNAVAILABLE;
  const grpcCode = isPassing ? status.UNAVAILABLE : status.FAILED_PRECONDITION;
  const retryAfter = isPassing ? { retryAfter: durationFromMs(100) } : {};
  return { reason, grpcCode, message: `${ErrorReason[reason]}, says the conformance kit`, ...retryAfter };
}
