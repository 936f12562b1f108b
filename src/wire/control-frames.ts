/**
 * Control frames of the work stream: welcome, heartbeats, cancels, lost leases, drain, rejections
 * (worker_service.proto). Rare beside claims and verdicts, so they go through the generated codec.
 */
import { LeaseLossCause, type WorkResponseSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { Reason } from '../kernel/cause.js';
import type { Refusal } from '../kernel/refusal.js';
import { MAX_OUTPUTS_PER_ATTEMPT, MAX_OUTPUT_BYTES_PER_ATTEMPT } from '../kernel/worker-report.js';
import { reasonMessage } from './cause-codec.js';
import { EnumTable } from './enum-tables.js';
import { MAX_FRAME_BYTES } from './frame-limits.js';
import { MAX_JSON_VALUE_BYTES } from './json-values.js';
import type { Fields } from './message-fields.js';
import { refusalMessage } from './refusal-message.js';
import { sessionAlias } from './session-alias.js';
import { toDuration, toTimestamp } from './time-values.js';

export type FrameContent = Exclude<Fields<typeof WorkResponseSchema>['frame'], undefined>;

export type LossCause =
  | 'session_expired'
  | 'not_accepted'
  | 'not_held'
  | 'attempt_timed_out'
  | 'no_progress'
  | 'deadline'
  | 'cancel_grace'
  | 'suspended'
  | 'superseded'
  | 'released'
  | 'parent';

const lossCauses = new EnumTable<LossCause, LeaseLossCause>({
  session_expired: LeaseLossCause.SESSION_EXPIRED,
  not_accepted: LeaseLossCause.NOT_ACCEPTED,
  not_held: LeaseLossCause.NOT_HELD,
  attempt_timed_out: LeaseLossCause.ATTEMPT_TIMED_OUT,
  no_progress: LeaseLossCause.NO_PROGRESS,
  deadline: LeaseLossCause.DEADLINE,
  cancel_grace: LeaseLossCause.CANCEL_GRACE,
  suspended: LeaseLossCause.SUSPENDED,
  superseded: LeaseLossCause.SUPERSEDED,
  released: LeaseLossCause.RELEASED,
  parent: LeaseLossCause.PARENT,
});

export interface LossToSend {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly cause: LossCause;
}

export interface CancelToSend {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly cancellationToken: string;
  readonly reason: Reason | null;
  readonly graceMs: number | null;
}

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
  readonly lost: readonly LossToSend[];
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

export function cancelsFrame(cancels: readonly CancelToSend[]): FrameContent {
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

export function leasesLostFrame(losses: readonly LossToSend[]): FrameContent {
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

function lossMessage({ taskId, generation, epoch, cause }: LossToSend) {
  return { taskId, generation, epoch: BigInt(epoch), cause: lossCauses.value(cause) };
}
