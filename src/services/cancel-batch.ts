/**
 * CancelBatch: Cancel for many, each judged alone and told by its own verdict (task_service.proto). The request id is
 * the key of each task's own request, so that a repetition, of the whole or of one by Cancel, is a replay.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Authority } from '../authority/authority.js';
import {
  type CancelBatchRequest,
  type CancelBatchResponseSchema,
  type CancelVerdict,
  CancelVerdictSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import { type CancelBatchCommand, readCancelBatch } from '../wire/cancel-batch-codec.js';
import { type View, views } from '../wire/enum-tables.js';
import { MAX_SEND_BYTES } from '../wire/frame-limits.js';
import { type ListCommand, wasCreatedWithin } from '../wire/list-codec.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import { RefusalError } from '../wire/refusal-error.js';
import { refusalMessage } from '../wire/refusal-message.js';
import { requiredTaskId } from '../wire/transition-codec.js';
import type { CallContext } from './call.js';
import type { Cancelled, Cancels } from './cancel.js';
import { refusalOf } from './failures.js';
import { valueOf } from './task-views.js';

/** Kept for each verdict whose task is told by name alone. */
const NAMED_VERDICT_BYTES = 2_048;

type Judged = { readonly cancelled: Cancelled } | { readonly error: unknown };

export class CancelBatches {
  constructor(
    private readonly authority: Authority,
    private readonly cancels: Cancels,
    private readonly tokens: TokenMint,
  ) {}

  async cancelBatch(
    request: CancelBatchRequest,
    context: CallContext,
  ): Promise<Fields<typeof CancelBatchResponseSchema>> {
    const view = views.readOr('view', request.view, 'name' as const);
    const { taskIds, filter, cancel } = readCancelBatch(request, this.tokens);
    const page = filter === null ? { taskIds: taskIds ?? [], nextPageToken: '' } : await this.found(filter);
    // All at once: they share transactions. Each has its answer before any is shown.
    const judging = page.taskIds.map((taskId, index) =>
      this.judge(taskId, filter === null ? `task_ids[${index}]` : 'task_id', cancel, context),
    );
    const judged = await Promise.all(judging);
    return { verdicts: await this.verdicts(page.taskIds, judged, view), nextPageToken: page.nextPageToken };
  }

  private async found(filter: ListCommand): Promise<{ taskIds: string[]; nextPageToken: string }> {
    if (filter.statuses?.length === 0) return { taskIds: [], nextPageToken: '' };
    const { tasks, next } = valueOf(
      await this.authority.reads.list({ ...filter, limit: filter.pageSize, withArgs: false }),
    );
    const wanted = tasks.filter((stored) => stored.kind === 'damaged' || wasCreatedWithin(stored.record, filter));
    const nextPageToken = next === null ? '' : this.tokens.give(filter.purpose, String(next));
    return { taskIds: wanted.map(({ taskId }) => taskId), nextPageToken };
  }

  private async judge(
    taskId: string,
    field: string,
    cancel: CancelBatchCommand['cancel'],
    context: CallContext,
  ): Promise<Judged> {
    try {
      return { cancelled: await this.cancels.judge({ ...cancel, taskId: requiredTaskId(field, taskId) }, context) };
    } catch (error) {
      return { error };
    }
  }

  /** In the view asked for while there is room for it in one message; after that by name. */
  private async verdicts(taskIds: readonly string[], judged: readonly Judged[], view: View): Promise<CancelVerdict[]> {
    const verdicts: CancelVerdict[] = [];
    let room = MAX_SEND_BYTES - NAMED_VERDICT_BYTES * (taskIds.length + 1);
    for (const [index, one] of judged.entries()) {
      const taskId = taskIds[index] ?? '';
      if ('error' in one) {
        verdicts.push(create(CancelVerdictSchema, { taskId, verdict: { case: 'refused', value: refused(one.error) } }));
        continue;
      }
      const shown = async (as: View): Promise<CancelVerdict> =>
        create(CancelVerdictSchema, {
          taskId,
          verdict: { case: 'accepted', value: await this.cancels.response(one.cancelled, as) },
        });
      let verdict = await shown(room > 0 ? view : 'name');
      const size = toBinary(CancelVerdictSchema, verdict).length - NAMED_VERDICT_BYTES;
      if (size > room) verdict = await shown('name');
      else room -= Math.max(size, 0);
      verdicts.push(verdict);
    }
    return verdicts;
  }
}

/** A defect is no verdict: the call ends with it. */
function refused(error: unknown): ReturnType<typeof refusalMessage> {
  const refusal = refusalOf(error);
  if (refusal.reason === 'INTERNAL' && !(error instanceof RefusalError)) throw error;
  return refusalMessage(refusal);
}
