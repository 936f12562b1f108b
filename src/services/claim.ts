/**
 * Transition{claim}: one task for a caller without a stream (task_service.proto, ClaimIntent), under a session of its
 * own. Report renews and settles.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer } from '../authority/intent-work.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { LeaseGrantSchema } from '../gen/reeve/v1/task_service_pb.js';
import type { Fields } from '../wire/message-fields.js';
import { toTimestamp } from '../wire/time-values.js';
import type { IntentCommand, StatedIntent } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import type { Intents } from './intents.js';

export type StatedClaim = Extract<StatedIntent, { readonly kind: 'claim' }>;

export class Claims {
  constructor(
    private readonly authority: Authority,
    private readonly dispatcher: Dispatcher,
    private readonly intents: Intents,
  ) {}

  claim(command: IntentCommand, { workerName, ttlMs }: StatedClaim, context: CallContext): Promise<IntentAnswer> {
    return this.dispatcher.unary.claim(workerName, ttlMs, (session) =>
      this.intents.apply(command, context, undefined, session),
    );
  }

  /** The lease that the answer gave, while it is in force. */
  async grantOf(answer: IntentAnswer): Promise<Fields<typeof LeaseGrantSchema> | null> {
    if (answer.kind !== 'applied' && answer.kind !== 'replayed') return null;
    const record = answer.kind === 'applied' ? answer.after : answer.record;
    const epoch = answer.kind === 'applied' ? record.lease?.epoch : answer.remembered.epoch;
    const { lease, generation, generationId, admission } = record;
    if (lease === null || lease.epoch !== epoch) return null;
    const session = await this.authority.store.loadSession(lease.sessionId);
    return {
      generation: { id: generationId, number: generation },
      epoch: BigInt(lease.epoch),
      leaseToken: this.authority.tokens.ofClaim(admission.taskId, lease.epoch).leaseToken,
      ...(session === null ? {} : { expireTime: toTimestamp(session.expiresAt) }),
    };
  }
}
