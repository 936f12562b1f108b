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
import type { TaskRecord } from '../kernel/record.js';
import type { SessionRow } from '../store/commit-plan.js';
import { DEFAULT_ACTOR } from '../wire/cause-codec.js';
import { contentHash } from '../wire/intent-content.js';
import { malformedField } from '../wire/refusal-error.js';
import type { IntentCommand, StatedIntent, StatedLease } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import { valueOf } from './task-views.js';

/** No claim has this epoch: a proof with it holds nothing. */
const NO_EPOCH = 0;
const HISTORY_PAGE_EVENTS = 1_000;
const HISTORY_PAGE_BYTES = 1_048_576;

interface Prepared {
  readonly intent: Intent;
  readonly guards: Guards;
  /** What the caller's lease proves; null when it stated none. */
  readonly proof: LeaseProof | null;
}

export class Intents {
  constructor(private readonly authority: Authority) {}

  /** Judges and commits. `remembers`: which answers the key keeps; by default those that changed something. */
  async apply(
    command: IntentCommand,
    context: CallContext,
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
    context: CallContext,
  ): Promise<{ readonly record: TaskRecord; readonly decision: Decision }> {
    const { intent, guards } = await this.prepare(command, context);
    const record = valueOf(await this.authority.get(command.taskId));
    const family = valueOf(await this.authority.familyOf(record));
    return { record, decision: decide(record, intent, this.authority.now(), guards, family) };
  }

  /** The lease a caller named, as the kernel takes it: a token that proves nothing holds nothing. */
  proofOf(taskId: string, lease: StatedLease | null, generationId: string | null): LeaseProof | null {
    if (lease === null) return null;
    const sameGeneration = lease.generationId === null || generationId === null || lease.generationId === generationId;
    const proved = sameGeneration && this.authority.tokens.isLeaseToken(lease.token, taskId, lease.epoch);
    return { epoch: proved ? lease.epoch : NO_EPOCH, sessionId: null };
  }

  private async prepare(command: IntentCommand, context: CallContext, session?: SessionRow): Promise<Prepared> {
    const { taskId, lease, guards } = command;
    const generationId = guards.generationId ?? lease?.generationId ?? null;
    const proof = this.proofOf(taskId, lease, guards.generationId);
    const cause = await this.causeOf(command, proof, context);
    const intent = await this.intentOf(command, proof, cause, session);
    const { fromStatus, expectedRevision } = guards;
    return { intent, proof, guards: { generationId, fromStatus, expectedRevision, lease: proof } };
  }

  private async causeOf(command: IntentCommand, proof: LeaseProof | null, context: CallContext): Promise<Cause> {
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
    const read = await this.authority.get(taskId);
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
        if (newGenerationId !== null) await this.refuseUsedGeneration(command, newGenerationId);
        return { kind: 'resume', newGenerationId, inputJson, spareGenerationId: this.authority.random.uuidV7(), cause };
      }
      case 'update_policy':
        return { kind: 'update_policy', fields: stated.fields, values: stated.values, cause };
      case 'settle': {
        const { outcome, resultJson, ending, retryAfterMs } = stated;
        const authoritativeEvent = await this.authoritativeEvent(command);
        const chance = this.authority.random.chance();
        return {
          kind: 'settle',
          outcome,
          resultJson,
          ending,
          retryAfterMs,
          lease: proof,
          authoritativeEvent,
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
    const stored = valueOf(await this.authority.event(taskId, number));
    return stored === null ? null : { number, generation: stored.event.generation, at: stored.event.at };
  }

  /** A generation id names one life of the task for ever; a repeat of the request that made it is still a replay. */
  private async refuseUsedGeneration({ taskId, key }: IntentCommand, newGenerationId: string): Promise<void> {
    const record = valueOf(await this.authority.get(taskId));
    if (record.generation === 1 && record.generationId !== newGenerationId) return;
    if (!(await this.wasUsed(taskId, newGenerationId))) return;
    const known = key === null ? null : await this.authority.store.findLedgerEntry(taskId, key);
    if (known === null)
      throw malformedField('new_generation_id', 'was used before for this task; a new one needs its own');
  }

  private async wasUsed(taskId: string, generationId: string): Promise<boolean> {
    for (let after = 0; ;) {
      const page = valueOf(await this.authority.history(taskId, after, HISTORY_PAGE_EVENTS, HISTORY_PAGE_BYTES));
      for (const { event } of page) {
        const begins = event.type === 'task.submitted' || event.type === 'reeve.task.generation_started';
        if (begins && event.data.generationId === generationId) return true;
        after = event.number;
      }
      if (page.length === 0) return false;
    }
  }
}

function standing({ sessionId, attachment }: SessionRow): { readonly sessionId: string; readonly attachment: number } {
  return { sessionId, attachment };
}
