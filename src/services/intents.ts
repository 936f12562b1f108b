/**
 * From what a caller stated to what the authority judges: adds proofs, defaults and looked-up facts to an intent and
 * applies it, or judges it dry (lifecycle.md section 4). Owns nothing of the judgement itself, and adds nothing that
 * would change what a keyed intent's content hashes to.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer, IntentOutcome } from '../authority/intent-work.js';
import type { Cause } from '../kernel/cause.js';
import { type Decision, decide } from '../kernel/decide.js';
import { eventNumberOf } from '../kernel/event.js';
import type { AuthoritativeEvent, Guards, Intent, LeaseProof } from '../kernel/intent.js';
import type { PlacementRules } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import type { SessionRow } from '../store/commit-plan.js';
import { DEFAULT_ACTOR } from '../wire/stated-cause.js';
import { contentHash } from '../wire/intent-content.js';
import type { IntentCommand, StatedIntent, StatedLease } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import { valueOf } from './value-of.js';

/** No claim has this epoch: a proof with it holds nothing. */
const NO_EPOCH = 0;

/** What an intent takes from its call: who speaks, and by which door. */
export type Speaker = Pick<CallContext, 'principal' | 'source'>;

interface Prepared {
  readonly intent: Intent;
  readonly guards: Guards;
  /** What the caller's lease proves; null when it stated none. */
  readonly proof: LeaseProof | null;
}

export class Intents {
  constructor(
    private readonly authority: Authority,
    /** What may be handed to a caller that names its task. */
    private readonly rules: PlacementRules,
  ) {}

  /** Judges and commits. `remembers`: which answers the key keeps; by default those that changed something. */
  async apply(
    command: IntentCommand,
    context: Speaker,
    remembers?: (outcome: IntentOutcome) => boolean,
    session?: SessionRow,
  ): Promise<IntentAnswer> {
    const { taskId, key } = command;
    const { intent, guards } = await this.prepare(command, context, session);
    const keyed = key === null ? {} : { key: { key, contentHash: contentHash(command) } };
    return this.authority.apply({
      taskId,
      intent,
      guards,
      ...keyed,
      ...(remembers === undefined ? {} : { remembers }),
      ...(session === undefined ? {} : { session: { ...standing(session), needs: 'live' as const } }),
    });
  }

  /** Judges on the record as it is now and commits nothing. */
  async judge(
    command: IntentCommand,
    context: Speaker,
  ): Promise<{ readonly record: TaskRecord; readonly decision: Decision }> {
    const { intent, guards } = await this.prepare(command, context);
    const record = valueOf(await this.authority.reads.get(command.taskId));
    const family = valueOf(await this.authority.reads.familyOf(record));
    const informed = await this.informed(record, intent);
    return { record, decision: decide(record, informed, this.authority.now(), guards, family) };
  }

  /** With what the authority adds itself where an intent is applied. */
  private async informed(record: TaskRecord, intent: Intent): Promise<Intent> {
    if (intent.kind !== 'resume' || intent.newGenerationId === null || record.generation === 1) return intent;
    return {
      ...intent,
      formerGenerationIds: valueOf(await this.authority.reads.generationIds(record.admission.taskId)),
    };
  }

  /** The lease a caller named, as the kernel takes it: a token that proves nothing holds nothing. */
  proofOf(taskId: string, lease: StatedLease | null, generationId: string | null): LeaseProof | null {
    if (lease === null) return null;
    const sameGeneration = lease.generationId === null || generationId === null || lease.generationId === generationId;
    const proved = sameGeneration && this.authority.tokens.isLeaseToken(lease.token, taskId, lease.epoch);
    return { epoch: proved ? lease.epoch : NO_EPOCH, sessionId: null };
  }

  private async prepare(command: IntentCommand, context: Speaker, session?: SessionRow): Promise<Prepared> {
    const { taskId, lease, guards } = command;
    const generationId = guards.generationId ?? lease?.generationId ?? null;
    const proof = this.proofOf(taskId, lease, guards.generationId);
    const cause = await this.causeOf(command, proof, context);
    const intent = await this.intentOf(command, proof, cause, session);
    const { fromStatus, expectedRevision } = guards;
    return { intent, proof, guards: { generationId, fromStatus, expectedRevision, lease: proof } };
  }

  private async causeOf(command: IntentCommand, proof: LeaseProof | null, context: Speaker): Promise<Cause> {
    const { actor, source, reason, causation } = command.cause;
    return {
      actor: actor ?? (await this.holder(command.taskId, proof)) ?? DEFAULT_ACTOR,
      principal: context.principal,
      source: source ?? context.source,
      reason,
      causation,
      authoritativeAt: null,
    };
  }

  /** The worker that the proof speaks for. A task that cannot be read is the authority's to refuse. */
  private async holder(taskId: string, proof: LeaseProof | null): Promise<Cause['actor'] | null> {
    if (proof === null || proof.epoch === NO_EPOCH) return null;
    const read = await this.authority.reads.get(taskId);
    if (!read.ok || read.value.lease?.epoch !== proof.epoch) return null;
    return { type: 'worker', id: read.value.lease.worker };
  }

  private async intentOf(
    command: IntentCommand,
    proof: LeaseProof | null,
    cause: Cause,
    session?: SessionRow,
  ): Promise<Intent> {
    const stated: StatedIntent = command.intent;
    switch (stated.kind) {
      case 'claim':
        // Who has the answer has the claim; it says `accepted` with its first report, which has to come within the TTL.
        return {
          kind: 'claim',
          sessionId: session?.sessionId ?? '',
          worker: stated.workerName,
          sessionTtlMs: stated.ttlMs,
          acceptTimeoutMs: stated.ttlMs,
          rules: this.rules,
          cause: command.cause.actor === null ? { ...cause, actor: { type: 'worker', id: stated.workerName } } : cause,
        };
      case 'suspend':
        return { kind: 'suspend', lease: proof, cause };
      case 'skip':
        return { kind: 'skip', cause };
      case 'request_cancellation':
        return { kind: 'request_cancellation', graceMs: stated.graceMs, cause };
      case 'resume': {
        const { newGenerationId, inputJson } = stated;
        return { kind: 'resume', newGenerationId, inputJson, spareGenerationId: this.authority.random.uuidV7(), cause };
      }
      case 'update_policy':
        return { kind: 'update_policy', fields: stated.fields, values: stated.values, cause };
      case 'settle': {
        const { outcome, resultJson, ending, retryAfterMs } = stated;
        const authoritativeEvent = await this.authoritativeEvent(command);
        const { authoritativeAt = null } = command.cause;
        const chance = this.authority.random.chance();
        return {
          kind: 'settle',
          outcome,
          resultJson,
          ending,
          retryAfterMs,
          lease: proof,
          authoritativeEvent,
          authoritativeAt,
          chance,
          cause,
        };
      }
    }
  }

  private async authoritativeEvent({ taskId, cause }: IntentCommand): Promise<AuthoritativeEvent | null> {
    const { authoritativeEventId } = cause;
    const number = authoritativeEventId === null ? null : eventNumberOf(taskId, authoritativeEventId);
    if (number === null) return null;
    const stored = valueOf(await this.authority.reads.event(taskId, number));
    return stored === null ? null : { number, generation: stored.event.generation, at: stored.event.at };
  }
}

/** The answers that a keyed Transition keeps: also that there was nothing to do. */
export function remembersTransition({ kind }: IntentOutcome): boolean {
  return kind === 'applied' || kind === 'unchanged';
}

/** Of a keyed Cancel every state that was answered is answered again, also that there was nothing to cancel. */
export function remembersCancel(outcome: IntentOutcome): boolean {
  if (outcome.kind === 'refused') return outcome.refusal.reason === 'TERMINAL_GENERATION';
  return remembersTransition(outcome);
}

function standing({ sessionId, attachment }: SessionRow): { readonly sessionId: string; readonly attachment: number } {
  return { sessionId, attachment };
}
