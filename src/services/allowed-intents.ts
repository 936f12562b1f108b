/**
 * Which intents are allowed from here: each judged dry by the kernel on one record, with the caller's lease
 * (TransitionResponse.allowed). Nothing is read and nothing is written.
 */
import { type AllowedIntentSchema, IntentKind } from '../gen/reeve/v1/task_service_pb.js';
import { type Cause } from '../kernel/cause.js';
import { decide, leaseLost } from '../kernel/decide.js';
import type { FamilyContext } from '../kernel/draft.js';
import { type Intent, type LeaseProof, NO_GUARDS } from '../kernel/intent.js';
import type { PlacementRules } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import type { Refusal } from '../kernel/refusal.js';
import { NO_ENDING } from '../kernel/settlement.js';
import type { SettledStatus } from '../kernel/status.js';
import type { Fields } from '../wire/message-fields.js';
import { refusalMessage } from '../wire/refusal-message.js';

const PROBE_CAUSE: Cause = {
  actor: { type: 'producer', id: '' },
  principal: '',
  source: '',
  reason: { code: 'run.skipped.operator', summary: '', evidenceRefs: [] },
  causation: null,
  authoritativeAt: null,
};

export function allowedIntents(
  record: TaskRecord,
  lease: LeaseProof | null,
  now: number,
  family: FamilyContext,
  rules: PlacementRules,
): Fields<typeof AllowedIntentSchema>[] {
  return probes(lease, rules).map(([intent, probe]) => {
    const refusal = refusalOf(record, probe, now, family);
    if (refusal === null) return { intent, allowed: true };
    return { intent, allowed: false, refusal: refusalMessage(refusal) };
  });
}

function refusalOf(record: TaskRecord, probe: Intent, now: number, family: FamilyContext): Refusal | null {
  const decision = decide(record, probe, now, NO_GUARDS, family);
  switch (decision.kind) {
    case 'applied':
    case 'unchanged':
      return null;
    case 'conflict':
      // The probes state no other guard than the lease.
      return leaseLost(record);
    case 'refused':
      return decision.refusal;
  }
}

function probes(lease: LeaseProof | null, rules: PlacementRules): readonly (readonly [IntentKind, Intent])[] {
  const cause = PROBE_CAUSE;
  const settle = (outcome: SettledStatus): Intent => ({
    kind: 'settle',
    outcome,
    resultJson: null,
    ending: NO_ENDING,
    lease,
    authoritativeEvent: null,
    chance: 0,
    cause,
  });
  return [
    [IntentKind.CLAIM, { kind: 'claim', sessionId: '', worker: '', sessionTtlMs: 0, acceptTimeoutMs: 0, rules, cause }],
    [IntentKind.SUSPEND, { kind: 'suspend', lease, cause }],
    [IntentKind.RESUME, { kind: 'resume', newGenerationId: null, spareGenerationId: '-', inputJson: null, cause }],
    [IntentKind.REQUEST_CANCELLATION, { kind: 'request_cancellation', graceMs: null, cause }],
    [IntentKind.SETTLE_CANCELLATION, settle('cancelled')],
    [IntentKind.SETTLE_COMPLETION, settle('completed')],
    [IntentKind.SETTLE_FAILURE, settle('failed')],
    [IntentKind.SETTLE_TIMEOUT, settle('timed_out')],
    [IntentKind.SKIP, { kind: 'skip', cause }],
  ];
}
