/**
 * Enum values as the words users write and read: `retry_wait`, `host`. A value this version does not know reads
 * `unknown` and is never sent.
 */
import { RepairKind } from '../../gen/reeve/v1/admin_service_pb.js';
import {
  ActorType,
  AepState,
  AdmissionSource,
  CancellationPolicy,
  CancellationState,
  DependencyCondition,
  ExecutionTarget,
  LifecyclePhase,
  OnUnsatisfied,
  OwnerStopped,
  ParentAttachment,
  ReceiptKind,
  TaskOutcome,
  TaskStatus,
  TaskView,
} from '../../gen/reeve/v1/task_pb.js';
import {
  BlockerKind,
  CancelState,
  Conflict,
  IntentKind,
  ListOrder,
  TimerKind,
} from '../../gen/reeve/v1/task_service_pb.js';
import { SessionState } from '../../gen/reeve/v1/worker_service_pb.js';

/** The members of a generated enum by their words. */
type Words<Members extends string> = Lowercase<Exclude<Members, 'UNSPECIFIED'>>;

interface Vocabulary<Word extends string, Value extends number> {
  /** The value of a word; every word has one. */
  value(word: Word): Value;
  /** The word of a value; undefined for UNSPECIFIED, `unknown` for what a newer server may say. */
  word(value: Value): Word | 'unknown' | undefined;
}

function vocabulary<E extends Record<string, string | number>>(
  members: E,
): Vocabulary<Words<Extract<keyof E, string>>, Extract<E[keyof E], number>> {
  type Word = Words<Extract<keyof E, string>>;
  type Value = Extract<E[keyof E], number>;
  const values = new Map<string, Value>();
  const words = new Map<number, Word>();
  for (const [name, value] of Object.entries(members)) {
    // A TypeScript enum also maps its numbers back to names.
    if (typeof value !== 'number' || name === 'UNSPECIFIED') continue;
    values.set(name.toLowerCase(), value as Value);
    words.set(value, name.toLowerCase() as Word);
  }
  return {
    value: (word) => {
      const value = values.get(word);
      if (value === undefined) throw new TypeError(`"${word}" is none of ${[...values.keys()].join(', ')}`);
      return value;
    },
    word: (value) => (value === 0 ? undefined : (words.get(value) ?? 'unknown')),
  };
}

export const statusWords = vocabulary(TaskStatus);
export const phaseWords = vocabulary(LifecyclePhase);
export const outcomeWords = vocabulary(TaskOutcome);
export const aepWords = vocabulary(AepState);
export const targetWords = vocabulary(ExecutionTarget);
export const actorWords = vocabulary(ActorType);
export const cancellationPolicyWords = vocabulary(CancellationPolicy);
export const cancellationWords = vocabulary(CancellationState);
export const ownerWords = vocabulary(OwnerStopped);
export const receiptWords = vocabulary(ReceiptKind);
export const unsatisfiedWords = vocabulary(OnUnsatisfied);
export const conditionWords = vocabulary(DependencyCondition);
export const attachmentWords = vocabulary(ParentAttachment);
export const sourceWords = vocabulary(AdmissionSource);
export const viewWords = vocabulary(TaskView);
export const cancelWords = vocabulary(CancelState);
export const conflictWords = vocabulary(Conflict);
export const intentWords = vocabulary(IntentKind);
export const blockerWords = vocabulary(BlockerKind);
export const timerWords = vocabulary(TimerKind);
export const sessionWords = vocabulary(SessionState);
export const orderWords = vocabulary(ListOrder);
export const repairWords = vocabulary(RepairKind);

export type TaskStatusWord = Words<keyof typeof TaskStatus>;
export type ExecutionTargetWord = Words<keyof typeof ExecutionTarget>;
export type BlockerWord = Words<keyof typeof BlockerKind>;
export type TimerWord = Words<keyof typeof TimerKind>;
export type SessionStateWord = Words<keyof typeof SessionState>;
export type RepairWord = Words<keyof typeof RepairKind>;
export type TaskViewWord = Words<keyof typeof TaskView>;

const TERMINAL: ReadonlySet<string | undefined> = new Set(['completed', 'failed', 'timed_out', 'cancelled', 'skipped']);

/** Over, for its generation. */
export function isTerminal(status: TaskStatusWord | 'unknown' | undefined): boolean {
  return TERMINAL.has(status);
}
