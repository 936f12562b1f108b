/**
 * Explain: why a task is where it is (task_service.proto). Gathers what the kernel cannot know (who is connected, how
 * long the holder's session lives, how long silence is excused) and lets it say what that means.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { ExplainRequest, ExplainResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { type ExplainContext, explain } from '../kernel/explain.js';
import type { TaskRecord } from '../kernel/record.js';
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
    const record = valueOf(await this.authority.get(await namedTask(this.authority, request)));
    const { blockers, nextTimer } = explain(record, await this.contextOf(record));
    return {
      task: await this.views.show(record, 'basic'),
      blockers: blockers.map(blockerMessage),
      ...(nextTimer === null ? {} : { nextTimer: nextTimerMessage(nextTimer) }),
    };
  }

  private async contextOf(record: TaskRecord): Promise<ExplainContext> {
    const { lease, status } = record;
    const { authority, dispatcher } = this;
    const row = lease === null ? null : await authority.store.loadSession(lease.sessionId);
    const ofRow = (sessionId: string) => dispatcher.session(sessionId)?.attached ?? false;
    return {
      permitWait: await authority.permitWait(record),
      now: authority.now(),
      quietSince: dispatcher.quietSince(),
      candidates: status === 'queued' ? dispatcher.candidates() : [],
      session: row === null || row.state === 'gone' ? null : { ...row, attached: ofRow(row.sessionId) },
    };
  }
}
