/**
 * Report between the wire and the domain: one claim's events and receipts, said without a stream (worker_service.proto).
 * Owns that everything in it is about the one claim named, and the shape of the answer.
 */
import type {
  CancelNoticeSchema,
  CancelReceipt,
  ReportRequest,
  TaskVerdictSchema,
  WorkerEvent,
} from '../gen/reeve/v1/worker_service_pb.js';
import type { TaskRecord } from '../kernel/record.js';
import { reasonMessage } from './cause-codec.js';
import { receipts as receiptKinds } from './enum-tables.js';
import type { Fields } from './message-fields.js';
import { malformedField } from './refusal-error.js';
import { toDuration } from './time-values.js';
import { requiredTaskId } from './transition-codec.js';
import { rejectedEventMessage, type VerdictToSend } from './verdict-frame.js';
import { type ClaimEvents, readWorkerEvents } from './worker-events-codec.js';

const MAX_EVENTS = 1_000;

export interface ReportCommand extends ClaimEvents {
  readonly leaseToken: string;
  readonly answeredThrough: number;
  readonly receipts: readonly { readonly token: string; readonly acknowledged: boolean; readonly field: string }[];
}

/** Throws MALFORMED. */
export function readReport(request: ReportRequest): ReportCommand {
  const taskId = requiredTaskId('task_id', request.taskId);
  const { generation, leaseToken } = request;
  const epoch = positive('epoch', request.epoch, 1);
  if (generation < 1) throw malformedField('generation', 'must be 1 or more');
  if (leaseToken === '') throw malformedField('lease_token', 'is required');
  if (request.events.length > MAX_EVENTS) throw malformedField('events', `must not be more than ${MAX_EVENTS}`);
  for (const [index, event] of request.events.entries()) agree(`events[${index}]`, event, request);
  const [read] = readWorkerEvents(
    request.events.map((event) => ({ ...event, taskId, generation, epoch: request.epoch })),
  );
  return {
    ...(read ?? { taskId, generation, epoch, events: [], weightBytes: 0 }),
    leaseToken,
    answeredThrough: positive('answered_through', request.answeredThrough, 0),
    receipts: request.receipts.map((receipt, index) => readReceipt(`receipts[${index}]`, receipt, request)),
  };
}

function readReceipt(field: string, receipt: CancelReceipt, request: ReportRequest): ReportCommand['receipts'][number] {
  agree(field, receipt, request);
  const kind = receiptKinds.read(`${field}.kind`, receipt.kind);
  if (kind === 'settled') throw malformedField(`${field}.kind`, 'a settlement says it');
  return {
    token: receipt.cancellationToken,
    acknowledged: kind === 'acknowledged',
    field: `${field}.cancellation_token`,
  };
}

/** What it states of its claim is what the report states. */
function agree(field: string, said: WorkerEvent | CancelReceipt, request: ReportRequest): void {
  if (said.taskId !== '' && said.taskId !== request.taskId) throw malformedField(`${field}.task_id`, 'is another task');
  if (said.generation !== 0 && said.generation !== request.generation) {
    throw malformedField(`${field}.generation`, 'is another generation');
  }
  if (said.epoch !== 0n && said.epoch !== request.epoch) throw malformedField(`${field}.epoch`, 'is another epoch');
}

function positive(field: string, value: bigint, least: number): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < least) throw malformedField(field, `must be ${least} or more`);
  return number;
}

export function verdictMessage(verdict: VerdictToSend): Fields<typeof TaskVerdictSchema> {
  return {
    taskId: verdict.taskId,
    epoch: BigInt(verdict.epoch),
    judgedThrough: BigInt(verdict.judgedThrough),
    committedSequence: BigInt(verdict.committedSequence),
    rejected: verdict.refused.map(({ seq, refusal }) => rejectedEventMessage(seq, refusal)),
  };
}

/** The pending cancel of a held task; null: none. */
export function pendingCancel(
  record: TaskRecord,
  cancellationToken: string,
  now: number,
): Fields<typeof CancelNoticeSchema> | null {
  const { cancellation, lease } = record;
  if (cancellation === null || lease === null) return null;
  const { reason, graceEndsAt } = cancellation;
  return {
    taskId: record.admission.taskId,
    generation: record.generation,
    epoch: BigInt(lease.epoch),
    cancellationToken,
    ...(reason === null ? {} : { reason: reasonMessage(reason) }),
    ...(graceEndsAt === null ? {} : { grace: toDuration(Math.max(graceEndsAt - now, 0)) }),
  };
}
