// Frames written by hand say exactly what the generated codec would: decoded by it, field by field, for any content.

import { fromBinary, create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SubmitStreamResponseSchema, SubmitVerdictSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { WorkResponseSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { Admission, TaskRecord } from '../../src/kernel/record.js';
import { Draft } from '../../src/kernel/draft.js';
import { DEFAULT_RETRY_POLICY } from '../../src/kernel/admission/retry-policy.js';
import { refuse } from '../../src/kernel/refusal.js';
import { normaliseApplication } from '../../src/kernel/admission/application.js';
import { buildActionKindRegistry } from '../../src/kernel/admission/action-kinds.js';
import { claimWeight, claimsFrame, splitClaims } from '../../src/wire/claim-frame.js';
import { MAX_CHECKPOINT_BYTES, MAX_FRAME_BYTES, MAX_RESUME_INPUT_BYTES } from '../../src/wire/frame-limits.js';
import { ProtoWriter } from '../../src/wire/proto-writer.js';
import { SubmitFrame } from '../../src/wire/submit-frame.js';
import { taskMessage } from '../../src/wire/task-codec.js';
import { verdictsFrame } from '../../src/wire/verdict-frame.js';

const text = (maxLength = 300) => fc.string({ unit: 'binary', maxLength }).map((value) => value.toWellFormed());
const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

declare global {
  // Of ES2024, in Node since 20.
  interface String {
    toWellFormed(): string;
  }
}

function recordOf(admission: Partial<Admission>, labels: Record<string, string> = {}): TaskRecord {
  const policy = {
    priority: 0,
    labels,
    description: null,
    timeoutMs: null,
    startByMs: null,
    notBeforeAtMs: null,
    attemptTimeoutMs: null,
    progressTimeoutMs: null,
    retry: DEFAULT_RETRY_POLICY,
    cancellationPolicy: 'COOPERATIVE' as const,
    concurrencyKey: null,
    retentionMs: null,
    parent: null,
    dependsOn: [],
    onUnsatisfied: 'skip' as const,
  };
  const actor = { type: 'producer' as const, id: '' };
  const full: Admission = {
    taskId: 'task',
    namespace: 'default',
    queue: 'default',
    idempotencyKey: 'key',
    application: {
      actionKind: 'agent',
      argsJson: '{}',
      executionTarget: 'host',
      requiredCapabilities: [],
      libraryRef: null,
      libraryContentHash: null,
    },
    applicationHash: 'sha256:0',
    policy,
    source: 'rpc',
    scheduleId: null,
    actor,
    principal: 'anonymous',
    traceContext: {},
    createdAt: 1_800_000_000_000,
    ...admission,
  };
  const cause = { actor, principal: '', source: 'rpc', reason: null, causation: null, authoritativeAt: null };
  return Draft.admit(full, 'generation', null, cause).record;
}

describe('submit verdicts', () => {
  it('are those of the generated codec', () => {
    const frame = new SubmitFrame();
    fc.assert(
      fc.property(text(), text(), text(), count, (idempotencyKey, namespace, taskId, sequence) => {
        const record = recordOf({ taskId, idempotencyKey });
        frame.addCreated(namespace, idempotencyKey, record, sequence);
        const { verdicts } = fromBinary(SubmitStreamResponseSchema, frame.take());
        const event = { eventId: `${taskId}~e1`, sequence: BigInt(sequence), eventNumber: 1n };
        const accepted = { task: taskMessage(record, 'name'), outcome: 1, transitionId: `${taskId}~r1`, event };
        const expected = create(SubmitVerdictSchema, {
          idempotencyKey,
          namespace,
          verdict: { case: 'accepted', value: accepted },
        });
        expect(verdicts).toEqual([expected]);
      }),
    );
  });

  it('take what comes encoded', () => {
    const frame = new SubmitFrame();
    const one = create(SubmitVerdictSchema, { idempotencyKey: 'a' });
    frame.addEncoded(toBinary(SubmitVerdictSchema, one));
    frame.addEncoded(toBinary(SubmitVerdictSchema, one));
    expect(fromBinary(SubmitStreamResponseSchema, frame.take()).verdicts).toEqual([one, one]);
    expect(frame.isEmpty).toBe(true);
  });
});

describe('claims', () => {
  it('are those of the generated codec', () => {
    const dictionary = fc.dictionary(
      text(20).filter((key) => key !== '__proto__'),
      text(20),
      { maxKeys: 4 },
    );
    fc.assert(
      fc.property(
        text(3_000),
        text(),
        dictionary,
        dictionary,
        fc.array(text(20)),
        count,
        (args, token, labels, trace, caps, at) => {
          const deadlineAt = at % 4_000_000_000_000;
          const record = recordOf({ traceContext: trace }, labels);
          const application = {
            ...record.admission.application,
            argsJson: args,
            requiredCapabilities: caps.filter((label) => label !== ''),
            libraryRef: token === '' ? null : token,
          };
          const claim = {
            record: { ...record, admission: { ...record.admission, application }, attempt: 2 },
            epoch: 7,
            leaseToken: token,
            cancellationToken: token,
            checkpointJson: args,
            inputJson: null,
            deadlineAt,
          };
          const { frameId, frame } = fromBinary(WorkResponseSchema, claimsFrame(at, [claim]));
          expect(frameId).toBe(BigInt(at));
          expect(frame).toMatchObject({
            case: 'claims',
            value: {
              claims: [
                {
                  taskId: 'task',
                  epoch: 7n,
                  generation: 1,
                  generationId: 'generation',
                  attempt: 2,
                  actionKind: 'agent',
                  argsJson: args,
                  leaseToken: token,
                  cancellationToken: token,
                  queue: 'default',
                  namespace: 'default',
                  executionTarget: 1,
                  maxAttempts: 3,
                  checkpointJson: args,
                  resumeInputJson: '',
                  labels,
                  traceContext: trace,
                  requiredCapabilities: application.requiredCapabilities,
                },
              ],
            },
          });
          const deadline = frame.case === 'claims' ? frame.value.claims[0]?.deadline : undefined;
          expect(Number(deadline?.seconds ?? 0n) * 1_000 + (deadline?.nanos ?? 0) / 1e6).toBe(deadlineAt);
        },
      ),
    );
  });

  it('are split into frames that fit', () => {
    const record = recordOf({});
    const argsJson = JSON.stringify({ text: 'x'.repeat(600_000) });
    const admission = { ...record.admission, application: { ...record.admission.application, argsJson } };
    const claim = {
      record: { ...record, admission },
      epoch: 1,
      leaseToken: '',
      cancellationToken: '',
      checkpointJson: null,
      inputJson: null,
      deadlineAt: null,
    };
    const lists = splitClaims([claim, claim, claim, claim, claim]);
    expect(lists.map((list) => list.length)).toEqual([2, 2, 1]);
    for (const list of lists) expect(claimsFrame(1, list).length).toBeLessThan(1_500_000);
  });
});

it('the largest claim there can be fits a frame, and weighs no less than it is', () => {
  const kinds = buildActionKindRegistry([]);
  if (!kinds.ok) throw new Error('no kinds');
  // 1 MiB as received, of what grows most in its canonical form, and every list full to its limits.
  const numbers = Array<string>(9_990).fill('9e15').join(',');
  const head = `{"n":[${numbers}],"t":"`;
  const argsJson = `${head}${'€'.repeat((1_048_576 - head.length - 2) / 3)}"}`;
  const normalised = normaliseApplication(
    {
      actionKind: 'agent',
      args: { form: 'text', text: argsJson },
      executionTarget: 'host',
      requiredCapabilities: Array.from({ length: 64 }, (_, index) => `${index}-`.padEnd(128, 'c')),
      libraryRef: 'l'.repeat(512),
      libraryContentHash: `sha256:${'0'.repeat(64)}`,
    },
    kinds.value,
  );
  if (!normalised.ok) throw new Error(JSON.stringify(normalised.refusal));
  const { application } = normalised;
  expect(Buffer.byteLength(application.argsJson)).toBeGreaterThan(1_160_000);
  const labels = Object.fromEntries(
    Array.from({ length: 64 }, (_, at) => [`${at}-`.padEnd(128, 'k'), 'v'.repeat(256)]),
  );
  const traceContext = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`t${at}`, '€'.repeat(510)]));
  const name = 'n'.repeat(128);
  const record = recordOf({ taskId: name, queue: name, namespace: 'n'.repeat(64), traceContext, application }, labels);
  const claim = {
    record: { ...record, generationId: name },
    epoch: Number.MAX_SAFE_INTEGER,
    leaseToken: 't'.repeat(64),
    cancellationToken: 't'.repeat(64),
    checkpointJson: JSON.stringify('x'.repeat(MAX_CHECKPOINT_BYTES - 2)),
    inputJson: JSON.stringify('x'.repeat(MAX_RESUME_INPUT_BYTES - 2)),
    deadlineAt: 253_402_300_799_999,
  };
  const { length } = claimsFrame(Number.MAX_SAFE_INTEGER, [claim]);
  expect(length).toBeLessThanOrEqual(MAX_FRAME_BYTES);
  expect(claimWeight(claim)).toBeGreaterThanOrEqual(length);
  expect(claimWeight(claim)).toBeLessThanOrEqual(MAX_FRAME_BYTES);
});

it('claims are weighed in bytes and not in characters', () => {
  const record = recordOf({});
  const argsJson = JSON.stringify({ text: '€'.repeat(200_000) });
  const admission = { ...record.admission, application: { ...record.admission.application, argsJson } };
  const claim = {
    record: { ...record, admission },
    epoch: 1,
    leaseToken: '',
    cancellationToken: '',
    checkpointJson: null,
    inputJson: null,
    deadlineAt: null,
  };
  const lists = splitClaims([claim, claim, claim, claim]);
  for (const list of lists) expect(claimsFrame(1, list).length).toBeLessThanOrEqual(MAX_FRAME_BYTES);
});

describe('verdicts', () => {
  it('are those of the generated codec', () => {
    fc.assert(
      fc.property(text(), count, count, (taskId, judgedThrough, committedSequence) => {
        const refused = [{ seq: 3, refusal: refuse('EVENT_GAP', 'gap', { expected_event_seq: '2' }) }];
        const bytes = verdictsFrame(1, [{ taskId, epoch: 2, judgedThrough, committedSequence, refused }]);
        const { frame } = fromBinary(WorkResponseSchema, bytes);
        expect(frame).toMatchObject({
          case: 'verdicts',
          value: {
            verdicts: [
              {
                taskId,
                epoch: 2n,
                judgedThrough: BigInt(judgedThrough),
                committedSequence: BigInt(committedSequence),
                rejected: [{ eventSeq: 3n, refusal: { grpcCode: 9 }, error: { code: 'event_gap' } }],
              },
            ],
          },
        });
      }),
    );
  });
});

it('a writer grows with what is written', () => {
  const writer = new ProtoWriter();
  const start = writer.begin(1);
  for (let index = 0; index < 10; index += 1) writer.string(1, `${'€'.repeat(100_000)}${index}`);
  writer.end(start);
  const bytes = writer.take();
  expect(bytes.length).toBeGreaterThan(3_000_000);
  expect(Buffer.from(bytes).toString('utf8')).toContain('€9');
});
