/**
 * Tombstones: what stays of a task for ever once it is purged, so that its key goes on naming it and its id is never
 * given again (lifecycle.md section 5). Owns what they hold and which records may become one, as far as the records
 * themselves tell; counts and edges are the store's to check.
 */
import { type ApplicationFieldHashes, applicationFieldHashes } from './admission/application-hash.js';
import type { TaskRecord } from './record.js';
import { type Refusal, refuse } from './refusal.js';
import { type TerminalStatus, isTerminal } from './status.js';

export interface Tombstone {
  readonly taskId: string;
  readonly namespace: string;
  readonly idempotencyKey: string;
  readonly generation: number;
  readonly generationId: string;
  readonly revision: number;
  readonly lastEvent: number;
  readonly status: TerminalStatus;
  readonly reasonCode: string | null;
  /** `sha256:<hex>`, as are the hashes of the fields. */
  readonly applicationHash: string;
  readonly fieldHashes: ApplicationFieldHashes;
  /** Epoch ms. */
  readonly finishedAt: number;
  readonly purgedAt: number;
}

/** What is to stay of this record; null while its generation lives. */
export function tombstoneOf(record: TaskRecord, purgedAt: number): Tombstone | null {
  const { admission, status } = record;
  if (!isTerminal(status)) return null;
  return {
    taskId: admission.taskId,
    namespace: admission.namespace,
    idempotencyKey: admission.idempotencyKey,
    generation: record.generation,
    generationId: record.generationId,
    revision: record.revision,
    lastEvent: record.lastEvent,
    status,
    reasonCode: record.reason?.code ?? null,
    applicationHash: admission.applicationHash,
    fieldHashes: applicationFieldHashes(admission.application),
    finishedAt: record.finishedAt ?? record.updatedAt,
    purgedAt,
  };
}

/** Whether a live parent still counts this task among its children: exactly the generation that it is attached to. */
export function isNeededByParent(record: TaskRecord, parent: TaskRecord | null): boolean {
  const link = record.admission.policy.parent;
  if (link?.attached !== true || parent === null) return false;
  return parent.generationId === link.generationId && !isTerminal(parent.status);
}

/** What an intent on a purged task is told; its key is answered by the tombstone instead. */
export function taskPurged(taskId: string, metadata: Readonly<Record<string, string>> = {}): Refusal {
  return refuse('TASK_NOT_FOUND', 'this task was purged: only its name is left', {
    task_id: taskId,
    purged: 'true',
    ...metadata,
  });
}
