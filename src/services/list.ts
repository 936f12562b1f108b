/**
 * List: pages of tasks in admission order (task_service.proto). One call looks at a bounded number of rows, so a page
 * may be short, even empty, and not be the last; it also stays below the size of a frame.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Authority } from '../authority/authority.js';
import { TaskSchema } from '../gen/reeve/v1/task_pb.js';
import { type ListRequest, type ListResponseSchema } from '../gen/reeve/v1/task_service_pb.js';
import type { StoredTask } from '../store/task-store.js';
import { type View, views } from '../wire/enum-tables.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import { type ListCommand, readList, wasCreatedWithin } from '../wire/list-codec.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import type { TaskFields } from '../wire/task-codec.js';
import { type LeaseExpiries, type TaskViews, valueOf } from './task-views.js';

/** Tag and length of a task in the page. */
const ITEM_OVERHEAD_BYTES = 8;

export class Lists {
  constructor(
    private readonly authority: Authority,
    private readonly views: TaskViews,
    private readonly tokens: TokenMint,
  ) {}

  async list(request: ListRequest): Promise<Fields<typeof ListResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const command = readList(request, this.tokens);
    const { namespace, queue, statuses, actionKinds, labels, parentTaskId, descending, pageSize, after } = command;
    const query = {
      namespace,
      queue,
      statuses,
      actionKinds,
      labels,
      parentTaskId,
      descending,
      after,
      limit: pageSize,
      withArgs: view === 'full',
    };
    const page = valueOf(await this.authority.reads.list(query));
    const tasks: ReturnType<typeof create<typeof TaskSchema>>[] = [];
    const leases = this.views.leaseExpiries();
    let room = MAX_FRAME_BYTES;
    let last = after;
    for (const stored of page.tasks) {
      if (isWanted(stored, command)) {
        const task = create(TaskSchema, await this.show(stored, view, leases));
        room -= toBinary(TaskSchema, task).length + ITEM_OVERHEAD_BYTES;
        if (room < 0 && tasks.length > 0) return { tasks, nextPageToken: this.token(command, last) };
        tasks.push(task);
      }
      last = stored.order;
    }
    return { tasks, nextPageToken: this.token(command, page.next) };
  }

  /** A damaged record shows its id and nothing else, so that one of them does not hide the others. */
  private async show(stored: StoredTask, view: View, leases: LeaseExpiries): Promise<TaskFields> {
    return stored.kind === 'task' ? this.views.show(stored.record, view, leases) : { taskId: stored.taskId };
  }

  private token(command: ListCommand, after: number | null): string {
    return after === null ? '' : this.tokens.give(command.purpose, String(after));
  }
}

function isWanted(stored: StoredTask, command: ListCommand): boolean {
  return stored.kind === 'damaged' || wasCreatedWithin(stored.record, command);
}
