/**
 * Control frames of the work stream: welcome, heartbeats, cancels, lost leases, drain, rejections
 * (worker_service.proto). Rare beside claims and verdicts, so they go through the generated codec.
 */
import { LeaseLossCause as LossCauseNumber, type WorkResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { CancelNotice, LeaseLoss, LeaseLossCause } from '../kernel/delivery.js';
import type { Refusal } from '../kernel/refusal.js';
import { MAX_OUTPUTS_PER_ATTEMPT, MAX_OUTPUT_BYTES_PER_ATTEMPT } from '../kernel/worker-report.js';
import { reasonMessage } from './cause-codec.js';
import { EnumTable } from './enum-tables.js';
import { MAX_FRAME_BYTES } from './frame-limits.js';
import { splitIntoFrames } from './frame-split.js';
import { MAX_JSON_VALUE_BYTES } from './json-values.js';
import type { Fields } from './message-fields.js';
import { refusalMessage } from './refusal-message.js';
import { sessionAlias } from './session-alias.js';
import { toDuration, toTimestamp } from './time-values.js';

export type FrameContent = Exclude<Fields<typeof WorkResponseSchema>['frame'], undefined>;

const lossCauses = new EnumTable<LeaseLossCause, LossCauseNumber>({
  session_expired: LossCauseNumber.SESSION_EXPIRED,
  not_accepted: LossCauseNumber.NOT_ACCEPTED,
  not_held: LossCauseNumber.NOT_HELD,
  attempt_timed_out: LossCauseNumber.ATTEMPT_TIMED_OUT,
  no_progress: LossCauseNumber.NO_PROGRESS,
  deadline: LossCauseNumber.DEADLINE,
  cancel_grace: LossCauseNumber.CANCEL_GRACE,
  suspended: LossCauseNumber.SUSPENDED,
  superseded: LossCauseNumber.SUPERSEDED,
  released: LossCauseNumber.RELEASED,
  parent: LossCauseNumber.PARENT,
});

export interface WelcomeToSend {
  readonly sessionId: string;
  readonly secret: string;
  readonly attachment: number;
  readonly ttlMs: number;
  readonly heartbeatMs: number;
  readonly acceptTimeoutMs: number;
  /** Epoch ms. */
  readonly now: number;
  readonly kept: readonly { readonly taskId: string; readonly epoch: number; readonly answeredThrough: number }[];
  readonly lost: readonly LeaseLoss[];
}

export function welcomeFrame(welcome: WelcomeToSend): FrameContent {
  return {
    case: 'welcome',
    value: {
      sessionId: welcome.sessionId,
      sessionSecret: welcome.secret,
      sessionAlias: sessionAlias(welcome.sessionId),
      attachment: BigInt(welcome.attachment),
      ttl: toDuration(welcome.ttlMs),
      heartbeatInterval: toDuration(welcome.heartbeatMs),
      acceptTimeout: toDuration(welcome.acceptTimeoutMs),
      limits: {
        maxFrameBytes: MAX_FRAME_BYTES,
        maxEventBytes: MAX_JSON_VALUE_BYTES,
        maxResultBytes: MAX_JSON_VALUE_BYTES,
        maxOutputsPerAttempt: MAX_OUTPUTS_PER_ATTEMPT,
        maxOutputBytesPerAttempt: BigInt(MAX_OUTPUT_BYTES_PER_ATTEMPT),
      },
      serverTime: toTimestamp(welcome.now),
      leasesKept: welcome.kept.map(({ taskId, epoch, answeredThrough }) => ({
        taskId,
        epoch: BigInt(epoch),
        answeredThrough: BigInt(answeredThrough),
      })),
      leasesLost: welcome.lost.map(lossMessage),
    },
  };
}

/** Ids, token, numbers, tags and lengths of a notice or a loss, in bytes at most. */
const NOTICE_OVERHEAD_BYTES = 512;
const REF_OVERHEAD_BYTES = 8;

/** Lists of notices that each fit a frame. */
export function splitCancels(cancels: readonly CancelNotice[]): readonly (readonly CancelNotice[])[] {
  return splitIntoFrames(cancels, ({ reason }) => {
    if (reason === null) return NOTICE_OVERHEAD_BYTES;
    const { code, summary, evidenceRefs } = reason;
    const texts = [code, summary, ...evidenceRefs];
    return texts.reduce((sum, text) => sum + Buffer.byteLength(text) + REF_OVERHEAD_BYTES, NOTICE_OVERHEAD_BYTES);
  });
}

/** Lists of losses that each fit a frame. */
export function splitLosses(losses: readonly LeaseLoss[]): readonly (readonly LeaseLoss[])[] {
  return splitIntoFrames(losses, () => NOTICE_OVERHEAD_BYTES);
}

export function cancelsFrame(cancels: readonly CancelNotice[]): FrameContent {
  return {
    case: 'cancels',
    value: {
      cancels: cancels.map(({ taskId, generation, epoch, cancellationToken, reason, graceMs }) => ({
        taskId,
        generation,
        epoch: BigInt(epoch),
        cancellationToken,
        ...(reason === null ? {} : { reason: reasonMessage(reason) }),
        ...(graceMs === null ? {} : { grace: toDuration(graceMs) }),
      })),
    },
  };
}

export function leasesLostFrame(losses: readonly LeaseLoss[]): FrameContent {
  return { case: 'leasesLost', value: { losses: losses.map(lossMessage) } };
}

export function heartbeatFrame(answers: bigint, now: number): FrameContent {
  return { case: 'heartbeat', value: { heartbeatFrameId: answers, serverTime: toTimestamp(now) } };
}

export function drainFrame(reconnectAfterMs: number, graceMs: number): FrameContent {
  return { case: 'drain', value: { reconnectAfter: toDuration(reconnectAfterMs), grace: toDuration(graceMs) } };
}

export function rejectionFrame(frameId: bigint, refusal: Refusal): FrameContent {
  return { case: 'rejection', value: { frameId, refusal: refusalMessage(refusal) } };
}

function lossMessage({ taskId, generation, epoch, cause }: LeaseLoss) {
  return { taskId, generation, epoch: BigInt(epoch), cause: lossCauses.value(cause) };
}
