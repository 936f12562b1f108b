// Lives of tasks made by the real kernel, for property tests: whatever it can produce, the codecs must carry.

import fc from 'fast-check';
import { type TaskPolicy, resolvePolicy } from '../../src/kernel/admission/policy.js';
import type { Actor, Cause, Reason } from '../../src/kernel/cause.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { Intent, WorkerSaying } from '../../src/kernel/intent.js';
import type { Admission, Ending, TaskRecord } from '../../src/kernel/record.js';
import { POLICY_FIELDS } from '../../src/store/code-tables.js';
import { judgeReport } from '../../src/kernel/worker-report.js';

/** Any text, and often what escaping gets wrong: quotes, line feeds, NUL, other planes, lone surrogates. */
export const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('"', '\\', 'a\nb', '\u0000', '\ud800', 'é', 'e\u0301', ' x ', '1', '=', 'x'.repeat(200)),
);
const anyJson = fc.oneof(
  fc.json({ maxDepth: 2 }),
  anyText.map((text) => JSON.stringify({ text })),
  anyText,
);
const orNull = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });
const instant = fc.integer({ min: 0, max: 4_000_000_000_000 });

const actor: fc.Arbitrary<Actor> = fc.record({
  type: fc.constantFrom(
    'producer',
    'worker',
    'operator',
    'schedule',
    'reaper',
    'parent',
    'dependency',
    'webhook',
    'recovery',
    'admin',
  ),
  id: anyText,
});
const reason: fc.Arbitrary<Reason> = fc.record({
  code: anyText,
  summary: anyText,
  evidenceRefs: fc.array(anyText, { maxLength: 3 }),
});
const cause: fc.Arbitrary<Cause> = fc.record({
  actor,
  principal: anyText,
  source: fc.oneof(fc.constantFrom('rpc', 'stream', 'aep', 'authority'), anyText),
  reason: orNull(reason),
  causation: orNull(anyText),
  authoritativeAt: orNull(instant),
});
const error = fc.record({ code: anyText, message: anyText, retryable: fc.boolean(), detailsJson: orNull(anyJson) });
const endingFields = {
  exitCode: orNull(fc.integer()),
  errorDetail: orNull(anyText),
  invocationId: orNull(anyText),
  resultRef: orNull(anyText),
  evidenceRefs: fc.array(anyText, { maxLength: 2 }),
};
const ending: fc.Arbitrary<Ending> = fc.record({ error: orNull(error), ...endingFields });

const label = fc.stringMatching(/^[a-z_]{1,12}$/);
export const policy: fc.Arbitrary<TaskPolicy> = fc
  .record(
    {
      priority: fc.integer({ min: -100, max: 100 }),
      labels: fc.dictionary(label, label, { maxKeys: 3, noNullPrototype: true }),
      description: fc.stringMatching(/^[ -~é]{0,20}$/),
      timeoutMs: fc.integer({ min: 1, max: 9_000_000 }),
      startByMs: fc.integer({ min: 1, max: 9_000_000 }),
      attemptTimeoutMs: fc.integer({ min: 1, max: 9_000_000 }),
      progressTimeoutMs: fc.integer({ min: 1, max: 9_000_000 }),
      retentionMs: fc.integer({ min: 0, max: 9_000_000 }),
      concurrencyKey: label,
      cancellationPolicy: fc.constantFrom('COOPERATIVE', 'FENCED'),
      retry: fc.record(
        {
          maxAttempts: fc.integer({ min: 1, max: 9 }),
          jitter: fc.double({ min: 0, max: 1, noNaN: true }),
          nonRetryableCodes: fc.array(label, { maxLength: 2 }),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  .map((input) => {
    const resolved = resolvePolicy(input);
    if (!resolved.ok) throw new Error(JSON.stringify(resolved.refusal));
    return resolved.value;
  });

export const admission: fc.Arbitrary<Admission> = fc.record({
  taskId: fc.stringMatching(/^[A-Za-z0-9._:-]{1,40}$/),
  namespace: anyText,
  queue: anyText,
  idempotencyKey: anyText,
  application: fc.record({
    actionKind: anyText,
    argsJson: anyJson,
    executionTarget: fc.constantFrom('host', 'local_worktree', 'daytona', 'remote_agent', 'process'),
    requiredCapabilities: fc.array(anyText, { maxLength: 3 }),
    libraryRef: orNull(anyText),
    libraryContentHash: orNull(anyText),
  }),
  applicationHash: fc.oneof(fc.stringMatching(/^sha256:[0-9a-f]{64}$/), anyText),
  policy,
  source: fc.constantFrom('rpc', 'stream', 'cli', 'schedule', 'aep', 'embedded', 'authority'),
  scheduleId: orNull(anyText),
  actor,
  principal: anyText,
  traceContext: fc.dictionary(label, anyText, { maxKeys: 2, noNullPrototype: true }),
  createdAt: instant,
});

const saying: fc.Arbitrary<WorkerSaying> = fc.oneof(
  fc.constant<WorkerSaying>({ kind: 'accepted' }),
  fc.constant<WorkerSaying>({ kind: 'started' }),
  fc.record({
    kind: fc.constant('progress' as const),
    progress: orNull(fc.double({ min: 0, max: 1, noNaN: true })),
    message: orNull(anyText),
  }),
  fc.record({
    kind: fc.constant('output' as const),
    output: fc.record({
      outputJson: orNull(anyJson),
      binaryBase64: orNull(fc.base64String({ maxLength: 20 })),
      contentType: orNull(anyText),
      truncated: fc.boolean(),
    }),
  }),
  fc.record({ kind: fc.constant('blocked' as const), reason: anyText }),
  fc.record({ kind: fc.constant('checkpoint' as const), checkpointJson: anyJson }),
  fc.record({ kind: fc.constant('completed' as const), resultJson: orNull(anyJson), ending: orNull(ending) }),
  fc.record({
    kind: fc.constant('failed' as const),
    ending: fc.record({ error, ...endingFields }),
    retryAfterMs: orNull(fc.integer({ min: 0, max: 1e7 })),
  }),
  fc.record({ kind: fc.constant('cancelled' as const), ending: orNull(ending), reason: orNull(anyText) }),
  fc.record({ kind: fc.constant('timed_out' as const), ending: orNull(ending) }),
  fc.record({ kind: fc.constant('suspended' as const), reason: orNull(anyText) }),
);

type Step = (draft: Draft) => void;

const intent =
  (make: (draft: Draft) => Intent): Step =>
  (draft) =>
    void judge(draft, make(draft));
const lease = (draft: Draft): { epoch: number; sessionId: string | null } => ({
  epoch: draft.record.lease?.epoch ?? 0,
  sessionId: draft.record.lease?.sessionId ?? null,
});

// Claims and reports weigh more, and most reports open properly: few doors are open to a task that does not run.
const claimStep: fc.Arbitrary<Step> = fc
  .record({ sessionId: anyText, worker: anyText, cause })
  .map((claim) => intent(() => ({ kind: 'claim', ...claim, sessionTtlMs: 30_000, acceptTimeoutMs: 5_000 })));
const opening: fc.Arbitrary<readonly WorkerSaying[]> = fc.constantFrom(
  [],
  [{ kind: 'accepted' as const }],
  [{ kind: 'accepted' as const }, { kind: 'started' as const }],
);
const reportStep: fc.Arbitrary<Step> = fc
  .record({ opening, sayings: fc.array(saying, { maxLength: 4 }), cause, chance: fc.constant(0.25) })
  .map(({ opening: first, sayings, ...rest }): Step => (draft) => {
    const held = draft.record.lease;
    if (held === null) return;
    const events = [...first, ...sayings].map((says, index) => ({ seq: held.eventSeq + index + 1, saying: says }));
    const report = { sessionId: held.sessionId, generation: draft.record.generation, epoch: held.epoch };
    judgeReport(draft, { ...report, answeredThrough: 0, events, ...rest });
  });
const otherStep: fc.Arbitrary<Step> = fc.oneof(
  cause.map((by) => intent((draft) => ({ kind: 'suspend', lease: draft.record.lease && lease(draft), cause: by }))),
  fc
    .record({ newGenerationId: orNull(anyText), spareGenerationId: anyText, inputJson: orNull(anyJson), cause })
    .map((resume) => intent(() => ({ kind: 'resume', ...resume }))),
  fc
    .record({ graceMs: orNull(fc.integer({ min: 0, max: 10_000 })), cause })
    .map((request) => intent(() => ({ kind: 'request_cancellation', ...request }))),
  fc
    .record({ acknowledged: fc.boolean(), cause })
    .map((receipt) => intent((draft) => ({ kind: 'receipt', lease: lease(draft), ...receipt }))),
  fc
    .record({ why: fc.constantFrom('undelivered', 'forgotten'), cause })
    .map((back) => intent((draft) => ({ kind: 'hand_back', lease: lease(draft), ...back }))),
  fc
    .record({ checkpointJson: orNull(anyJson), cause })
    .map((given) => intent((draft) => ({ kind: 'release', lease: lease(draft), ...given }))),
  cause.map((by) => intent((draft) => ({ kind: 'session_lost', sessionId: lease(draft).sessionId ?? '', cause: by }))),
  cause.map((by) => intent(() => ({ kind: 'skip', cause: by }))),
  fc
    .record({ fields: fc.subarray([...POLICY_FIELDS], { minLength: 1 }), values: policy, cause })
    .map((change) => intent(() => ({ kind: 'update_policy', ...change }))),
  fc.constant(intent(() => ({ kind: 'tick', quietSince: 0, chance: 0.75 }))),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: claimStep },
  { weight: 3, arbitrary: reportStep },
  { weight: 5, arbitrary: otherStep },
);

export interface CommitOfLife {
  readonly base: number;
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
}

/** The commits of one life: some steps each, some time apart. The first one admits. */
export const life: fc.Arbitrary<readonly CommitOfLife[]> = fc
  .record({
    admission,
    generationId: anyText,
    notBeforeAfterMs: orNull(fc.integer({ min: 0, max: 60_000 })),
    cause,
    commits: fc.array(
      fc.record({ afterMs: fc.integer({ min: 0, max: 400_000 }), steps: fc.array(step, { maxLength: 5 }) }),
      { maxLength: 8 },
    ),
  })
  .map(({ admission: admitted, generationId, notBeforeAfterMs, cause: by, commits }) => {
    const notBeforeAt = notBeforeAfterMs === null ? null : admitted.createdAt + notBeforeAfterMs;
    let draft = Draft.admit(admitted, generationId, notBeforeAt, by);
    const lived: CommitOfLife[] = [{ base: 0, record: draft.record, events: draft.events }];
    let now = admitted.createdAt;
    for (const { afterMs, steps } of commits) {
      now += afterMs;
      const base = draft.record.lastEvent;
      draft = Draft.of(draft.record, now);
      for (const take of steps) take(draft);
      if (draft.events.length > 0) lived.push({ base, record: draft.record, events: draft.events });
    }
    return lived;
  });
