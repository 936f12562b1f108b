// What the wire costs per item on the hot path, in ns: decode and admit a submission, encode its verdict, encode a
// claim, decode a worker's events, encode the verdict on them. The generated codec stands beside as the yardstick.

import { type MessageInitShape, create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { SubmitStreamRequestSchema, SubmitStreamResponseSchema } from '../src/gen/reeve/v1/task_service_pb.js';
import {
  WorkRequestSchema,
  WorkResponseSchema,
  type WorkerEventSchema,
} from '../src/gen/reeve/v1/worker_service_pb.js';
import { buildActionKindRegistry } from '../src/kernel/admission/action-kinds.js';
import type { Submission } from '../src/kernel/admission/submission.js';
import { Draft } from '../src/kernel/draft.js';
import type { TaskRecord } from '../src/kernel/record.js';
import { claimsFrame } from '../src/wire/claim-frame.js';
import { readSubmission } from '../src/wire/submission-codec.js';
import { SubmitFrame } from '../src/wire/submit-frame.js';
import { verdictsFrame } from '../src/wire/verdict-frame.js';
import { readWorkerEvents } from '../src/wire/worker-events-codec.js';

const ITEMS = 64;
const ROUNDS = 3_000;
const registry = buildActionKindRegistry([]);
if (!registry.ok) throw new Error('no registry');
const kinds = registry.value;
const origin = { source: 'stream' as const, principal: 'anonymous', traceContext: {} };

function measure(name: string, items: number, once: () => unknown): void {
  for (let round = 0; round < ROUNDS; round += 1) once();
  const began = process.hrtime.bigint();
  for (let round = 0; round < ROUNDS; round += 1) once();
  const ns = Number(process.hrtime.bigint() - began) / ROUNDS / items;
  console.log(`${name.padEnd(58)} ${ns.toFixed(0).padStart(7)} ns/item`);
}

const submissions = Array.from({ length: ITEMS }, (_, index) => ({
  idempotencyKey: `order-${index}-abcdefgh`,
  actionKind: 'agent',
  argsForm: { case: 'argsJson' as const, value: JSON.stringify({ prompt: 'hello world', n: index, pages: [1, 2, 3] }) },
  executionTarget: 1,
}));
const submitBytes = toBinary(
  SubmitStreamRequestSchema,
  create(SubmitStreamRequestSchema, { frameId: 1n, submissions }),
);

function admitted(): Submission[] {
  const frame = fromBinary(SubmitStreamRequestSchema, submitBytes);
  return frame.submissions.map((submission) => {
    const read = readSubmission(submission, origin, kinds);
    if (!read.ok) throw new Error(read.refusal.message);
    return read.value;
  });
}

const records: TaskRecord[] = admitted().map((submission, index) => {
  const taskId = `0190b6a0-7e7e-7e7e-8e8e-${String(index).padStart(12, '0')}`;
  const cause = { ...origin, actor: submission.actor, reason: null, causation: null, authoritativeAt: null };
  return Draft.admit({ ...submission, taskId, createdAt: 1_800_000_000_000 }, taskId, null, cause).record;
});

measure('decode SubmitStreamRequest', ITEMS, () => fromBinary(SubmitStreamRequestSchema, submitBytes));
measure('decode and admit a submission', ITEMS, admitted);

const frame = new SubmitFrame();
measure('encode a submit verdict, NAME view', ITEMS, () => {
  records.forEach((record, index) => frame.addCreated('', record.admission.idempotencyKey, record, index + 1_000));
  return frame.take();
});
const verdictFields = fromBinary(SubmitStreamResponseSchema, encodedVerdicts());
measure('  by the generated codec', ITEMS, () =>
  toBinary(
    SubmitStreamResponseSchema,
    create(SubmitStreamResponseSchema, { verdicts: verdictFields.verdicts.map(bare) }),
  ),
);

const claims = records.map((record) => ({
  record,
  epoch: 1,
  leaseToken: 'abcdefghijklmnopqrstuv',
  cancellationToken: 'vutsrqponmlkjihgfedcba',
  checkpointJson: null,
  inputJson: null,
  deadlineAt: null,
}));
measure('encode a claim', ITEMS, () => claimsFrame(7, claims));
const claimFields = fromBinary(WorkResponseSchema, claimsFrame(7, claims));
measure('  by the generated codec (encoding alone)', ITEMS, () => toBinary(WorkResponseSchema, claimFields));

const events = records.slice(0, 32).flatMap((record): MessageInitShape<typeof WorkerEventSchema>[] => {
  const named = { taskId: record.admission.taskId, generation: 1, epoch: 1n };
  return [
    { ...named, eventSeq: 1n, event: { case: 'accepted', value: {} } },
    { ...named, eventSeq: 2n, event: { case: 'started', value: {} } },
    { ...named, eventSeq: 3n, event: { case: 'completed', value: { resultJson: '{"ok":true}' } } },
  ];
});
const eventBytes = toBinary(
  WorkRequestSchema,
  create(WorkRequestSchema, { frameId: 1n, frame: { case: 'events', value: { events } } }),
);
measure('decode a worker event', events.length, () => fromBinary(WorkRequestSchema, eventBytes));
measure('decode and read a worker event', events.length, () => {
  const { frame: content } = fromBinary(WorkRequestSchema, eventBytes);
  return content.case === 'events' ? readWorkerEvents(content.value.events) : null;
});

const verdicts = records.map((record, index) => ({
  taskId: record.admission.taskId,
  epoch: 1,
  judgedThrough: 3,
  committedSequence: 10_000 + index,
  refused: [],
}));
measure('encode a TaskVerdict', ITEMS, () => verdictsFrame(9, verdicts));
const taskVerdicts = fromBinary(WorkResponseSchema, verdictsFrame(9, verdicts));
measure('  by the generated codec (encoding alone)', ITEMS, () => toBinary(WorkResponseSchema, taskVerdicts));

function encodedVerdicts(): Uint8Array {
  records.forEach((record, index) => frame.addCreated('', record.admission.idempotencyKey, record, index + 1_000));
  return frame.take();
}

/** The fields of a message without the message, so that creating it costs what it costs a service. */
function bare<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(bare) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !name.startsWith('$'))
      .map(([name, member]) => [name, bare(member as unknown)]),
  ) as Value;
}
