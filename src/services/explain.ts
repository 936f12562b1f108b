/**
 * Explain: why a task is where it is (task_service.proto). The dispatcher knows who is connected, the kernel what that
 * means.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { ExplainRequest, ExplainResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { blockerMessage, nextTimerMessage } from '../wire/explain-codec.js';
import type { Fields } from '../wire/message-fields.js';
import { namedTask } from './task-names.js';
import { type TaskViews, valueOf } from './task-views.js';

export class Explains {
  constructor(
    private readonly authority: Authority,
    private readonly dispatcher: Dispatcher,
    private readonly views: TaskViews,
  ) {}

  async explain(request: ExplainRequest): Promise<Fields<typeof ExplainResponseSchema>> {
    const record = valueOf(await this.authority.reads.get(await namedTask(this.authority, request)));
    const { blockers, nextTimer } = await this.dispatcher.explain(record);
    return {
      task: await this.views.show(record, 'basic'),
      blockers: blockers.map(blockerMessage),
      ...(nextTimer === null ? {} : { nextTimer: nextTimerMessage(nextTimer) }),
    };
  }
}
