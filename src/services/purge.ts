/**
 * Purge by hand: finished tasks by age, status, namespace and queue, one bounded step at a time (admin_service.proto).
 * The answer of a step is kept under its key once the step is done: a repetition after a crash in the middle goes on
 * with what is left. Every step that takes something away is told to the log, with its reason.
 */
import type { Authority } from '../authority/authority.js';
import { purgeTasks } from '../authority/purge-steps.js';
import type { PurgeRequest as PurgeTask } from '../authority/purge-work.js';
import type { PurgeRequest, PurgeResponseSchema } from '../gen/reeve/v1/admin_service_pb.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { isNeededByParent } from '../kernel/tombstone.js';
import type { StoredTask } from '../store/task-store.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import {
  type PurgeCommand,
  type PurgeStep,
  decodeStep,
  encodeStep,
  purgeMessage,
  readPurge,
} from '../wire/purge-codec.js';
import { RefusalError } from '../wire/refusal-error.js';
import type { CallContext } from './call.js';
import { OPERATION_REMEMBERED_MS } from './operation-memory.js';
import { valueOf } from './task-views.js';

const TASKS_PER_LIST = 256;
/** Each looks at a bounded number of rows: so much is one step, however little of it may go. */
const MAX_LISTS_PER_STEP = 64;

export interface PurgeContext {
  readonly authority: Authority;
  readonly tokens: TokenMint;
  readonly onPurged: (details: Readonly<Record<string, unknown>>) => void;
}

/** Tasks that are old enough, out of one look at the store. */
interface Found {
  readonly due: readonly Due[];
  readonly next: number | null;
}

interface Due extends PurgeTask {
  readonly order: number;
  readonly record: TaskRecord;
  readonly finishedAt: number;
}

export class Purges {
  /** Steps under way by their keys: a repetition waits for the same. */
  private readonly running = new Map<string, { readonly contentHash: string; readonly step: Promise<PurgeStep> }>();

  constructor(private readonly context: PurgeContext) {}

  async purge(request: PurgeRequest, call: CallContext): Promise<Fields<typeof PurgeResponseSchema>> {
    const { tokens } = this.context;
    const command = readPurge(request, tokens);
    const { key } = command;
    if (key === null) return purgeMessage(await this.step(command), command, tokens, false);
    const running = this.running.get(key);
    const known = running ?? valueOf(await this.context.authority.reads.operation(key));
    if (known !== null && known.contentHash !== command.contentHash) throw new RefusalError(keyConflict(key));
    if (known !== null && 'answerJson' in known) {
      return purgeMessage(decodeStep(known.answerJson), command, tokens, true);
    }
    // Another call may have begun with the key while the store was asked.
    const step = (known ?? this.running.get(key))?.step;
    return purgeMessage(await (step ?? this.begin(key, command, call)), command, tokens, step !== undefined);
  }

  private begin(key: string, command: PurgeCommand, call: CallContext): Promise<PurgeStep> {
    const step = this.keptStep(key, command, call).finally(() => this.running.delete(key));
    this.running.set(key, { contentHash: command.contentHash, step });
    return step;
  }

  private async keptStep(key: string, command: PurgeCommand, call: CallContext): Promise<PurgeStep> {
    const { authority, onPurged } = this.context;
    const step = await this.step(command);
    const { scope, reason, contentHash } = command;
    onPurged({ ...step, ...scope, reason, principal: call.principal, key });
    const at = authority.now();
    const entry = { key, contentHash, answerJson: encodeStep(step), at };
    const kept = await authority.upkeep.keepOperation({ entry, forgetBefore: at - OPERATION_REMEMBERED_MS });
    if (kept.kind === 'refused') throw new RefusalError(kept.refusal);
    return step;
  }

  private async step(command: PurgeCommand): Promise<PurgeStep> {
    const { authority } = this.context;
    const { maxTasks } = command;
    const finishedBefore = authority.now() - command.scope.olderThanMs;
    const sums = { purged: 0, kept: 0, newestFinish: null as number | null };
    const count = (due: Due, gone: boolean): void => {
      if (!gone) sums.kept += 1;
      else {
        sums.purged += 1;
        sums.newestFinish = Math.max(sums.newestFinish ?? 0, due.finishedAt);
      }
    };
    let next = command.after ?? 0;
    let more = true;
    for (let lists = 0; more && lists < MAX_LISTS_PER_STEP && sums.purged < maxTasks; lists++) {
      const found = await this.find(command, next, finishedBefore, Math.min(TASKS_PER_LIST, maxTasks - sums.purged));
      if (command.validateOnly) for (const due of found.due) count(due, !(await this.isNeeded(due.record)));
      else await this.take(found.due, count);
      more = found.next !== null;
      next = found.next ?? next;
    }
    const { horizon } = valueOf(await authority.reads.eventBounds());
    return { ...sums, next: more ? next : null, horizon };
  }

  private async find({ scope }: PurgeCommand, after: number, finishedBefore: number, limit: number): Promise<Found> {
    const { statuses, namespace, queue } = scope;
    const filter = { statuses, namespace, queue, actionKinds: null, labels: {} };
    const query = { ...filter, descending: false, after, limit, withArgs: false };
    const { tasks, next } = valueOf(await this.context.authority.reads.list(query));
    return { due: tasks.flatMap((task) => dueOf(task, finishedBefore)), next };
  }

  private async take(due: readonly Due[], count: (due: Due, gone: boolean) => void): Promise<void> {
    const refusals: Refusal[] = [];
    await purgeTasks(
      this.context.authority,
      due,
      (task, answer) => {
        if (answer.kind === 'refused') refusals.push(answer.refusal);
        // What changed since it was found is no longer what was asked for.
        else if (answer.kind !== 'changed') count(task, answer.kind === 'purged');
      },
      () => refusals.length === 0,
    );
    const [refused] = refusals;
    if (refused !== undefined) throw new RefusalError(refused);
  }

  private async isNeeded(record: TaskRecord): Promise<boolean> {
    const { authority } = this.context;
    const { taskId, policy } = record.admission;
    if (policy.parent?.attached === true) {
      const parent = await authority.reads.find(policy.parent.taskId);
      if (!parent.ok && parent.refusal.reason === 'RECORD_DAMAGED') return true;
      if (parent.ok && parent.value.kind === 'task' && isNeededByParent(record, parent.value.record)) return true;
    }
    return authority.store.isNeeded(taskId);
  }
}

/** A damaged task is not touched before it is repaired. */
function dueOf(task: StoredTask, finishedBefore: number): readonly Due[] {
  if (task.kind !== 'task') return [];
  const { taskId, order, record } = task;
  const { finishedAt, lastEvent } = record;
  if (finishedAt === null || finishedAt > finishedBefore) return [];
  return [{ taskId, version: lastEvent, order, record, finishedAt }];
}

function keyConflict(key: string): Refusal {
  return refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another purge', { idempotency_key: key });
}
