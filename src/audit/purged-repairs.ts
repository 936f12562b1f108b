/**
 * Repairs of what is left of purged tasks, on an operator's word. There is no history to say so in: who, why and what
 * are kept with the answer under the key of the repair, as for a purge by hand, and told to the log by whoever asked.
 */
import type { Authority } from '../authority/authority.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { taskPurged } from '../kernel/tombstone.js';
import type { AuditedRemains, AuditedTombstone } from '../store/audit-rows.js';
import type { OperationEntry } from '../store/purge-rows.js';
import type { Finding } from './findings.js';
import type { RepairAnswer, RepairCommand } from './repairs.js';
import { planTombstone } from './tombstone-plan.js';
import { auditTombstone } from './tombstones.js';

/** How long the answer to a repair is remembered. */
const REMEMBERED_MS = 30 * 86_400_000;

type Done = Extract<RepairAnswer, { kind: 'done' }>;

export class PurgedRepairs {
  constructor(private readonly authority: Authority) {}

  /** `lost`: it is not what it was. Throws StoreError. */
  async repair(command: RepairCommand, purged: AuditedTombstone | AuditedRemains): Promise<RepairAnswer | 'lost'> {
    const { taskId, kind, key } = command;
    if (purged.kind === 'remains' || kind === 'redact_payload') return refused(taskPurged(taskId));
    const operation = key === null ? null : { key: operationKey(taskId, key.key), contentHash: key.contentHash };
    const known = operation === null ? null : await this.authority.store.findOperation(operation.key);
    if (known !== null) return this.replay(command, known, purged);
    const findings = auditTombstone(purged);
    const plan = planTombstone(kind, purged, findings, this.authority.now());
    if (plan.kind === 'impossible') {
      const metadata = { task_id: taskId, purged: 'true', repair: kind, mended_by: plan.mendedBy.join(',') };
      return refused(refuse('INVALID_TRANSITION', `this repair is of no use: ${plan.why}`, metadata));
    }
    const untouched = answerOf(purged, findings, { applied: false, replayed: false });
    if (operation === null || plan.kind === 'sound') return untouched;
    const at = this.authority.now();
    const answerJson = JSON.stringify({ findings, cause: command.cause });
    const entry = { ...operation, answerJson, at };
    const write = { entry, forgetBefore: at - REMEMBERED_MS };
    const outcome = await this.authority.upkeep.repairTombstone(plan.repair, write);
    if (outcome.kind !== 'applied') return outcome.kind === 'lost' ? 'lost' : outcome;
    return this.mended(taskId, findings, { applied: true, replayed: false });
  }

  private async replay(
    command: RepairCommand,
    known: OperationEntry,
    { taskId }: AuditedTombstone,
  ): Promise<RepairAnswer> {
    if (known.contentHash !== command.key?.contentHash) {
      return refused(
        refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was used for something else on this task', {
          idempotency_key: command.key?.key ?? '',
          task_id: taskId,
        }),
      );
    }
    const { findings } = JSON.parse(known.answerJson) as { readonly findings: readonly Finding[] };
    return this.mended(taskId, findings, { applied: true, replayed: true });
  }

  private async mended(
    taskId: string,
    findings: readonly Finding[],
    outcome: Pick<Done, 'applied' | 'replayed'>,
  ): Promise<RepairAnswer> {
    const found = await this.authority.reads.find(taskId);
    const tombstone = found.ok && found.value.kind === 'purged' ? found.value.tombstone : null;
    return { kind: 'done', ...outcome, findings, record: null, tombstone };
  }
}

function answerOf(
  { tombstone }: AuditedTombstone,
  findings: readonly Finding[],
  outcome: Pick<Done, 'applied' | 'replayed'>,
): RepairAnswer {
  return { kind: 'done', ...outcome, findings, record: null, tombstone: tombstone.ok ? tombstone.value : null };
}

/** No caller's key has a line break. */
function operationKey(taskId: string, key: string): string {
  return `repair\n${taskId}\n${key}`;
}

function refused(refusal: Refusal): RepairAnswer {
  return { kind: 'refused', refusal };
}
