/**
 * Transition: one typed intent under the guards the caller states, committed or judged dry, with what is allowed from
 * there (task_service.proto; lifecycle.md sections 3 and 4). A guard that does not hold is an answer.
 */
import type { Authority } from '../authority/authority.js';
import type { TransitionRequest, TransitionResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { Conflict } from '../gen/reeve/v1/task_service_pb.js';
import type { LeaseProof } from '../kernel/intent.js';
import type { PlacementRules } from '../kernel/placement.js';
import { type View, statuses, views } from '../wire/enum-tables.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError } from '../wire/refusal-error.js';
import { type IntentCommand, readTransition } from '../wire/transition-codec.js';
import { allowedIntents } from './allowed-intents.js';
import type { CallContext } from './call.js';
import type { Claims, StatedClaim } from './claim.js';
import { type IntentResult, resultOf } from './intent-answers.js';
import { type Intents, remembersTransition } from './intents.js';
import { type TaskViews, valueOf } from './task-views.js';

type Response = Fields<typeof TransitionResponseSchema>;

export class Transitions {
  constructor(
    private readonly authority: Authority,
    private readonly intents: Intents,
    private readonly claims: Claims,
    private readonly views: TaskViews,
    private readonly rules: PlacementRules,
  ) {}

  async transition(request: TransitionRequest, context: CallContext): Promise<Response> {
    const command = readTransition(request);
    const { intent } = command;
    if (intent.kind === 'claim' && !request.validateOnly) return this.claim(request, command, intent, context);
    const view = views.readOr('view', request.view, 'basic' as const);
    const proof = this.intents.proofOf(command.taskId, command.lease, command.guards.generationId);
    const result = request.validateOnly
      ? await this.validate(command, context)
      : await resultOf(this.authority, await this.intents.apply(command, context, remembersTransition));
    return this.response(result, view, proof, request.validateOnly);
  }

  /** The one intent that gives something to its caller: the lease. */
  private async claim(
    request: TransitionRequest,
    command: IntentCommand,
    stated: StatedClaim,
    context: CallContext,
  ): Promise<Response> {
    const view = views.readOr('view', request.view, 'full' as const);
    const answer = await this.claims.claim(command, stated, context);
    const lease = await this.claims.grantOf(answer);
    const proof = lease === null ? null : { epoch: Number(lease.epoch), sessionId: null };
    const response = await this.response(await resultOf(this.authority, answer), view, proof, false);
    return lease === null ? response : { ...response, lease };
  }

  /** As if it were sent: a refusal is thrown, a conflict told, and nothing is committed. */
  private async validate(command: IntentCommand, context: CallContext): Promise<IntentResult> {
    const { record, decision } = await this.intents.judge(command, context);
    switch (decision.kind) {
      case 'refused':
        throw new RefusalError(decision.refusal);
      case 'conflict': {
        const { guard } = decision;
        return resultOf(this.authority, { kind: 'conflict', guard, observed: decision.observed, record });
      }
      case 'applied':
      case 'unchanged':
        return {
          kind: 'unchanged',
          replayed: false,
          conflict: Conflict.NONE,
          previousStatus: record.status,
          currentStatus: decision.kind === 'applied' ? decision.record.status : record.status,
          record,
          fact: null,
        };
    }
  }

  private async response(result: IntentResult, view: View, proof: LeaseProof | null, dry: boolean): Promise<Response> {
    const { record, fact } = result;
    const family = valueOf(await this.authority.reads.familyOf(record));
    return {
      // What was asked for stands committed, by this call, by the same key before, or by another's request.
      applied: result.kind !== 'conflict' && !dry,
      conflict: result.conflict,
      replayed: result.replayed,
      previousStatus: statuses.value(result.previousStatus),
      currentStatus: statuses.value(result.currentStatus),
      task: await this.views.show(record, view),
      ...(fact ?? {}),
      allowed: allowedIntents(record, proof, this.authority.now(), family, this.rules),
    };
  }
}
