/**
 * The enumerations of the wire and the words of the domain, one table each.
 * Owns which number is which word. A number that is in no table is the caller's mistake (MALFORMED naming the field);
 * zero is that too unless the reader says what it means there.
 */
import { RepairKind } from '../gen/reeve/v1/admin_service_pb.js';
import {
  ActorType,
  AdmissionSource,
  AepState,
  CancellationPolicy,
  DependencyCondition,
  ExecutionTarget,
  LifecyclePhase,
  OnUnsatisfied,
  ParentAttachment,
  ReceiptKind,
  TaskOutcome,
  TaskStatus,
  TaskView,
} from '../gen/reeve/v1/task_pb.js';
import type { AdmissionSource as SourceWord } from '../kernel/admission/identifiers.js';
import type { ExecutionTarget as TargetWord } from '../kernel/admission/application.js';
import type {
  DependencyCondition as ConditionWord,
  OnUnsatisfied as UnsatisfiedWord,
} from '../kernel/admission/family-policy.js';
import type { CancellationPolicy as PolicyWord } from '../kernel/admission/policy.js';
import type { AepState as AepWord } from '../kernel/aep.js';
import type { ActorType as ActorWord } from '../kernel/cause.js';
import type { RepairKind as RepairWord } from '../kernel/event.js';
import type { Lifecycle, Outcome, TaskStatus as StatusWord } from '../kernel/status.js';
import { malformedField } from './refusal-error.js';

export class EnumTable<Word extends string, Value extends number> {
  private readonly words: ReadonlyMap<number, Word>;

  constructor(private readonly values: Readonly<Record<Word, Value>>) {
    // Object.entries forgets that the keys of a Record of words are those words.
    this.words = new Map((Object.entries(values) as [Word, Value][]).map(([word, value]) => [value, word]));
  }

  /** The number of a word. */
  value(word: Word): Value {
    return this.values[word];
  }

  /** The word of a number, or null. */
  word(value: number): Word | null {
    return this.words.get(value) ?? null;
  }

  /** The word of a required field. Throws MALFORMED. */
  read(field: string, value: number): Word {
    const word = this.words.get(value);
    if (word !== undefined) return word;
    throw malformedField(field, value === 0 ? 'is required' : `${value} is not a known value`);
  }

  /** The word of a field whose zero stands for a default. Throws MALFORMED. */
  readOr<Default>(field: string, value: number, zero: Default): Word | Default {
    return value === 0 ? zero : this.read(field, value);
  }
}

export const statuses = new EnumTable<StatusWord, TaskStatus>({
  queued: TaskStatus.QUEUED,
  waiting_dependency: TaskStatus.WAITING_DEPENDENCY,
  running: TaskStatus.RUNNING,
  retry_wait: TaskStatus.RETRY_WAIT,
  suspended: TaskStatus.SUSPENDED,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
  timed_out: TaskStatus.TIMED_OUT,
  cancelled: TaskStatus.CANCELLED,
  skipped: TaskStatus.SKIPPED,
});

export const lifecycles = new EnumTable<Lifecycle, LifecyclePhase>({
  registered: LifecyclePhase.REGISTERED,
  active: LifecyclePhase.ACTIVE,
  suspended: LifecyclePhase.SUSPENDED,
  terminal: LifecyclePhase.TERMINAL,
});

export const outcomes = new EnumTable<Outcome, TaskOutcome>({
  completed: TaskOutcome.COMPLETED,
  failed: TaskOutcome.FAILED,
  timed_out: TaskOutcome.TIMED_OUT,
  cancelled: TaskOutcome.CANCELLED,
});

export const aepStates = new EnumTable<AepWord, AepState>({
  submitted: AepState.SUBMITTED,
  accepted: AepState.ACCEPTED,
  started: AepState.STARTED,
  progress: AepState.PROGRESS,
  output: AepState.OUTPUT,
  blocked: AepState.BLOCKED,
  completed: AepState.COMPLETED,
  failed: AepState.FAILED,
  cancelled: AepState.CANCELLED,
  timed_out: AepState.TIMED_OUT,
});

export const executionTargets = new EnumTable<TargetWord, ExecutionTarget>({
  host: ExecutionTarget.HOST,
  local_worktree: ExecutionTarget.LOCAL_WORKTREE,
  daytona: ExecutionTarget.DAYTONA,
  remote_agent: ExecutionTarget.REMOTE_AGENT,
  process: ExecutionTarget.PROCESS,
});

export const actorTypes = new EnumTable<ActorWord, ActorType>({
  producer: ActorType.PRODUCER,
  worker: ActorType.WORKER,
  operator: ActorType.OPERATOR,
  schedule: ActorType.SCHEDULE,
  reaper: ActorType.REAPER,
  parent: ActorType.PARENT,
  dependency: ActorType.DEPENDENCY,
  webhook: ActorType.WEBHOOK,
  recovery: ActorType.RECOVERY,
  admin: ActorType.ADMIN,
});

export const cancellationPolicies = new EnumTable<PolicyWord, CancellationPolicy>({
  COOPERATIVE: CancellationPolicy.COOPERATIVE,
  FENCED: CancellationPolicy.FENCED,
});

export const attachments = new EnumTable<'attached' | 'detached', ParentAttachment>({
  attached: ParentAttachment.ATTACHED,
  detached: ParentAttachment.DETACHED,
});

export const conditions = new EnumTable<ConditionWord, DependencyCondition>({
  succeeded: DependencyCondition.SUCCEEDED,
  terminal: DependencyCondition.TERMINAL,
});

export const unsatisfied = new EnumTable<UnsatisfiedWord, OnUnsatisfied>({
  skip: OnUnsatisfied.SKIP,
  fail: OnUnsatisfied.FAIL,
  cancel: OnUnsatisfied.CANCEL,
});

export const admissionSources = new EnumTable<SourceWord, AdmissionSource>({
  rpc: AdmissionSource.RPC,
  stream: AdmissionSource.STREAM,
  cli: AdmissionSource.CLI,
  schedule: AdmissionSource.SCHEDULE,
  aep: AdmissionSource.AEP,
  embedded: AdmissionSource.EMBEDDED,
});

export const repairKinds = new EnumTable<RepairWord, RepairKind>({
  rebuild_record: RepairKind.REBUILD_RECORD,
  accept_record: RepairKind.ACCEPT_RECORD,
  reindex: RepairKind.REINDEX,
  redact_payload: RepairKind.REDACT_PAYLOAD,
});

export type View = 'name' | 'basic' | 'full';

export const views = new EnumTable<View, TaskView>({
  name: TaskView.NAME,
  basic: TaskView.BASIC,
  full: TaskView.FULL,
});

export type Receipt = 'delivered' | 'acknowledged' | 'settled';

export const receipts = new EnumTable<Receipt, ReceiptKind>({
  delivered: ReceiptKind.DELIVERED,
  acknowledged: ReceiptKind.ACKNOWLEDGED,
  settled: ReceiptKind.SETTLED,
});
