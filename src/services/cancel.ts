/**
 * Cancel: two-phase cancellation with receipts (lifecycle.md section 6). What is not running is cancelled at once; of
 * what runs the owner is told, and the call may wait for a receipt. A repeat of the request id gets the same state and
 * transition id, whatever has become of the task since.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer } from '../authority/intent-work.js';
import {
  type CancelRequest,
  type CancelResponseSchema,
  CancelState,
  type ReceiptTimesSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import { type View, receipts, views } from '../wire/enum-tables.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError } from '../wire/refusal-error.js';
import { durationMsWithin, toTimestamp } from '../wire/time-values.js';
import { type IntentCommand, readCancel } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import { type FactFields, resultOf } from './intent-answers.js';
import { type Intents, remembersCancel } from './intents.js';
import type { ReceiptWaits } from './receipt-waits.js';
import { namedTask } from './task-names.js';
import type { TaskViews } from './task-views.js';

const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 300_000;

export interface Cancelled {
  readonly state: CancelState;
  readonly replayed: boolean;
  readonly generation: number;
  readonly generationId: string;
  readonly record: TaskRecord;
  readonly fact: FactFields | null;
}

export class Cancels {
  constructor(
    private readonly authority: Authority,
    private readonly intents: Intents,
    private readonly views: TaskViews,
    private readonly waits: ReceiptWaits,
  ) {}

  async cancel(request: CancelRequest, context: CallContext): Promise<Fields<typeof CancelResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const receipt = receipts.readOr('wait_for', request.waitFor, null);
    const { waitTimeout } = request;
    const patienceMs =
      waitTimeout === undefined ? DEFAULT_WAIT_MS : durationMsWithin('wait_timeout', waitTimeout, 0, MAX_WAIT_MS);
    const command = readCancel(request);
    const taskId = await namedTask(this.authority, request);
    const cancelled = await this.judge({ ...command, taskId }, context);
    const { generation, state, record } = cancelled;
    if (receipt === null || state !== CancelState.CANCELLATION_REQUESTED) return this.response(cancelled, view);
    const later = await this.waits.until(record, generation, receipt, patienceMs, context.signal);
    return this.response({ ...cancelled, record: later }, view);
  }

  /** Commits the wish; throws its refusal. */
  async judge(command: IntentCommand, context: CallContext): Promise<Cancelled> {
    return this.outcomeOf(await this.intents.apply(command, context, remembersCancel));
  }

  async response(cancelled: Cancelled, view: View): Promise<Fields<typeof CancelResponseSchema>> {
    const { generation, generationId, state, replayed, fact, record } = cancelled;
    return {
      state,
      generation: { id: generationId, number: generation },
      replayed,
      task: await this.views.show(record, view),
      ...(fact ?? {}),
      receipts: receiptTimes(record, generation),
    };
  }

  private async outcomeOf(answer: IntentAnswer): Promise<Cancelled> {
    if (answer.kind === 'refused') return alreadyTerminal(answer);
    if (answer.kind === 'replayed' && answer.remembered.kind === 'refused') {
      const { record, remembered } = answer;
      const { generation, generationId } = remembered;
      return { state: CancelState.ALREADY_TERMINAL, replayed: true, generation, generationId, record, fact: null };
    }
    const { kind, replayed, currentStatus, record, fact } = await resultOf(this.authority, answer);
    const { generation, generationId } = answer.kind === 'replayed' ? answer.remembered : record;
    const state = currentStatus === 'cancelled' ? CancelState.CANCELLED : CancelState.CANCELLATION_REQUESTED;
    return { state, replayed, generation, generationId, record, fact: kind === 'applied' ? fact : null };
  }
}

function alreadyTerminal(answer: Extract<IntentAnswer, { kind: 'refused' }>): Cancelled {
  const { refusal, record } = answer;
  if (refusal.reason !== 'TERMINAL_GENERATION' || record === null) throw new RefusalError(refusal);
  const { generation, generationId } = record;
  return { state: CancelState.ALREADY_TERMINAL, replayed: false, generation, generationId, record, fact: null };
}

function receiptTimes(record: TaskRecord, generation: number): Fields<typeof ReceiptTimesSchema> {
  if (record.generation !== generation) return {};
  const { cancellation, finishedAt } = record;
  return {
    ...(cancellation?.deliveredAt ? { deliveredTime: toTimestamp(cancellation.deliveredAt) } : {}),
    ...(cancellation?.acknowledgedAt ? { acknowledgedTime: toTimestamp(cancellation.acknowledgedAt) } : {}),
    ...(isTerminal(record.status) && finishedAt !== null ? { settledTime: toTimestamp(finishedAt) } : {}),
  };
}
