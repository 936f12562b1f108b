/**
 * Repair: mending what is stored of one task (admin_service.proto). The operator's words and the caller's identity go
 * into the history, and to the log, for a purged task has none; the actor is always `admin`, whoever it was.
 */
import type { Repairs } from '../audit/repairs.js';
import type { RepairRequest, RepairResponseSchema } from '../gen/reeve/v1/admin_service_pb.js';
import type { Cause } from '../kernel/cause.js';
import { reason } from '../kernel/reason-codes.js';
import { readRepair } from '../wire/admin-codec.js';
import type { Fields } from '../wire/message-fields.js';
import { purgedMessage } from '../wire/purged-task-codec.js';
import { RefusalError } from '../wire/refusal-error.js';
import type { CallContext } from './call.js';
import type { TaskViews } from './task-views.js';
import { findingMessage } from './verify.js';

export class RepairCalls {
  constructor(
    private readonly repairs: Repairs,
    private readonly views: TaskViews,
    private readonly onRepaired: (details: Readonly<Record<string, unknown>>) => void,
  ) {}

  async repair(request: RepairRequest, context: CallContext): Promise<Fields<typeof RepairResponseSchema>> {
    const { reason: words, ...stated } = readRepair(request);
    const { taskId, kind, key } = stated;
    const answer = await this.repairs.repair({ ...stated, cause: causeOf(words, context) });
    if (answer.kind === 'refused') throw new RefusalError(answer.refusal);
    const { applied, replayed, findings, record, tombstone } = answer;
    if (applied && !replayed) {
      this.onRepaired({ taskId, kind, reason: words, principal: context.principal, key: key?.key });
    }
    const left = tombstone === null ? undefined : purgedMessage(tombstone);
    const task = record === null ? left : await this.views.show(record, 'basic');
    return { applied, replayed, findings: findings.map(findingMessage), ...(task === undefined ? {} : { task }) };
  }
}

function causeOf(words: string, { principal, source }: CallContext): Cause {
  return {
    actor: { type: 'admin', id: principal },
    principal,
    source,
    reason: reason('run.repaired.operator', words),
    causation: null,
    authoritativeAt: null,
  };
}
