/**
 * A task as users see it: camelCase, words for enums, Date for times, JSON values beside their exact text. Fields of
 * proto/reeve/v1/task.proto, which documents limits and meaning.
 */
import type { JsonValue } from '../transport/json.js';
import type {
  actorWords,
  aepWords,
  attachmentWords,
  cancellationPolicyWords,
  cancellationWords,
  conditionWords,
  outcomeWords,
  ownerWords,
  phaseWords,
  sourceWords,
  targetWords,
  TaskStatusWord,
  unsatisfiedWords,
} from './words.js';

type Told<V extends { word(value: never): string | undefined }> = Exclude<ReturnType<V['word']>, undefined>;

export interface Generation {
  readonly id: string;
  /** 1, 2, 3, … */
  readonly number: number;
}

export interface Actor {
  readonly type: Told<typeof actorWords>;
  readonly id: string;
}

export interface Reason {
  /** Three dotted segments, `run.failed.lease_attempts_exhausted`. */
  readonly code: string;
  readonly summary: string;
  readonly evidenceRefs: readonly string[];
}

/** Its name and position: all that volume needs. */
export interface TaskName {
  readonly id: string;
  readonly namespace: string;
  readonly key: string;
  readonly status: TaskStatusWord | 'unknown';
  /** Grows by one with every fact. */
  readonly revision: number;
  readonly generation: Generation;
  /** Two snapshots with the same number are the same. */
  readonly lastEventNumber: number;
  /** Only the name is left. */
  readonly purged: boolean;
}

export interface TaskErrorInfo {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: JsonValue | undefined;
  readonly detailsJson: string;
  readonly truncated: boolean;
}

export interface TaskCancellation {
  readonly state: Told<typeof cancellationWords>;
  readonly policy: Told<typeof cancellationPolicyWords>;
  readonly requestTime: Date | undefined;
  readonly requestedBy: Actor | undefined;
  readonly deliveredTime: Date | undefined;
  readonly acknowledgedTime: Date | undefined;
  readonly ownerStopped: Told<typeof ownerWords> | undefined;
  readonly reason: Reason | undefined;
}

export interface TaskTimers {
  readonly nextDueTime: Date | undefined;
  readonly deadline: Date | undefined;
  readonly startBy: Date | undefined;
  readonly notBefore: Date | undefined;
  readonly acceptDeadline: Date | undefined;
  readonly attemptDeadline: Date | undefined;
  readonly progressDeadline: Date | undefined;
  readonly retryTime: Date | undefined;
  readonly graceDeadline: Date | undefined;
}

/** The policy in force. Spans in ms. */
export interface TaskPolicy {
  readonly priority: number | undefined;
  readonly description: string | undefined;
  readonly timeoutMs: number | undefined;
  readonly startByMs: number | undefined;
  readonly notBefore: Date | undefined;
  readonly attemptTimeoutMs: number | undefined;
  readonly progressTimeoutMs: number | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly onUnsatisfied: Told<typeof unsatisfiedWords> | undefined;
  readonly concurrencyKey: string | undefined;
  readonly retentionMs: number | undefined;
  readonly dependsOn: readonly { readonly taskId: string; readonly condition: Told<typeof conditionWords> }[];
}

export interface RetryPolicy {
  readonly maxAttempts: number | undefined;
  readonly initialMs: number | undefined;
  readonly multiplier: number | undefined;
  readonly maximumMs: number | undefined;
  readonly jitter: number | undefined;
  readonly nonRetryableCodes: readonly string[];
}

export interface Task extends TaskName {
  readonly queue: string;
  readonly kind: string;
  /** The arguments; undefined in the basic view. */
  readonly args: JsonValue | undefined;
  readonly argsJson: string;
  readonly target: Told<typeof targetWords> | undefined;
  readonly capabilities: readonly string[];
  readonly libraryRef: string | undefined;
  readonly libraryContentHash: string | undefined;
  readonly applicationHash: string;
  readonly lifecycle: Told<typeof phaseWords> | undefined;
  readonly outcome: Told<typeof outcomeWords> | undefined;
  readonly aepState: Told<typeof aepWords> | undefined;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly lease:
    | {
        readonly workerName: string;
        readonly sessionAlias: string;
        readonly epoch: number;
        readonly expireTime: Date | undefined;
      }
    | undefined;
  readonly cancellation: TaskCancellation | undefined;
  /** What the running attempt last said. `progress` is 0 … 1. */
  readonly phase: {
    readonly progress: number | undefined;
    readonly message: string;
    readonly blockedReason: string;
  };
  readonly reason: Reason | undefined;
  readonly error: TaskErrorInfo | undefined;
  /** The result of a completed task; undefined in the basic view. */
  readonly result: JsonValue | undefined;
  /** Its exact text, empty when there is none. */
  readonly resultJson: string;
  readonly resultRef: string;
  readonly outputTruncated: boolean;
  readonly exitCode: number | undefined;
  readonly errorDetail: string;
  readonly invocationId: string;
  readonly admission:
    | {
        readonly source: Told<typeof sourceWords> | undefined;
        readonly scheduleId: string;
        readonly actor: Actor | undefined;
        readonly principal: string;
      }
    | undefined;
  readonly parent:
    | {
        readonly taskId: string;
        readonly generationId: string;
        readonly attachment: Told<typeof attachmentWords> | undefined;
      }
    | undefined;
  readonly timers: TaskTimers;
  readonly labels: Readonly<Record<string, string>>;
  readonly policy: TaskPolicy | undefined;
  readonly createTime: Date | undefined;
  readonly queueTime: Date | undefined;
  readonly startTime: Date | undefined;
  readonly finishTime: Date | undefined;
  readonly updateTime: Date | undefined;
  readonly checkpoint: JsonValue | undefined;
  readonly checkpointJson: string;
  readonly resumeInput: JsonValue | undefined;
  readonly resumeInputJson: string;
}

/** A committed event, named without its content. */
export interface EventRef {
  readonly eventId: string;
  /** Position in the store. */
  readonly sequence: number;
  /** Position in the task's history. */
  readonly eventNumber: number;
}
