/**
 * Resume: a suspended task goes on, a finished one gets a new generation (task_service.proto; lifecycle.md section 3).
 * The same intent as Transition{resume}, with fewer guards and a shorter answer.
 */
import type { Authority } from '../authority/authority.js';
import type { ResumeRequest, ResumeResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { views } from '../wire/enum-tables.js';
import type { Fields } from '../wire/message-fields.js';
import { readResume } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import { resultOf } from './intent-answers.js';
import type { Intents } from './intents.js';
import type { TaskViews } from './task-views.js';

export class Resumes {
  constructor(
    private readonly authority: Authority,
    private readonly intents: Intents,
    private readonly views: TaskViews,
  ) {}

  async resume(request: ResumeRequest, context: CallContext): Promise<Fields<typeof ResumeResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const answer = await this.intents.apply(readResume(request), context);
    const { kind, conflict, replayed, record, fact } = await resultOf(this.authority, answer);
    const task = await this.views.show(record, view);
    return { applied: kind === 'applied', conflict, replayed, task, ...(fact ?? {}) };
  }
}
