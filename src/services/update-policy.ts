/**
 * UpdatePolicy: how a live task is treated from here on (task_service.proto). An intent like any other: guarded, keyed,
 * one fact; the kernel's timers and the place in the queue are computed anew in the same commit.
 */
import type { Authority } from '../authority/authority.js';
import type { UpdatePolicyRequest, UpdatePolicyResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { views } from '../wire/enum-tables.js';
import type { Fields } from '../wire/message-fields.js';
import { readUpdatePolicy } from '../wire/policy-update-codec.js';
import type { CallContext } from './call.js';
import { resultOf } from './intent-answers.js';
import type { Intents } from './intents.js';
import type { TaskViews } from './task-views.js';

export class PolicyUpdates {
  constructor(
    private readonly authority: Authority,
    private readonly intents: Intents,
    private readonly views: TaskViews,
  ) {}

  async update(request: UpdatePolicyRequest, context: CallContext): Promise<Fields<typeof UpdatePolicyResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const answer = await this.intents.apply(readUpdatePolicy(request), context);
    const { kind, conflict, replayed, record, fact } = await resultOf(this.authority, answer);
    const task = await this.views.show(record, view);
    return { applied: kind === 'applied', conflict, replayed, task, ...(fact ?? {}) };
  }
}
