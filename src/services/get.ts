/**
 * Get: one task as the store has it now, by either of its names; of a purged one the stub (task_service.proto).
 */
import type { Authority } from '../authority/authority.js';
import type { GetRequest, GetResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import { views } from '../wire/enum-tables.js';
import type { Fields } from '../wire/message-fields.js';
import { purgedMessage } from '../wire/purged-task-codec.js';
import { namedTask } from './task-names.js';
import { type TaskViews, valueOf } from './task-views.js';

export class Gets {
  constructor(
    private readonly authority: Authority,
    private readonly views: TaskViews,
  ) {}

  async get(request: GetRequest): Promise<Fields<typeof GetResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const taskId = await namedTask(this.authority, request);
    const found = valueOf(await this.authority.reads.find(taskId));
    return { task: found.kind === 'task' ? await this.views.show(found.record, view) : purgedMessage(found.tombstone) };
  }
}
