/**
 * The edge table: every legal change of status and the intents that may take it (lifecycle.md section 3).
 * A pair that is not here is INVALID_TRANSITION before any write. Who may take a declared edge is judged elsewhere.
 */
import type { TaskStatus } from './status.js';

export type EdgeIntent =
  | 'submit'
  | 'claim'
  | 'settle'
  | 'retry'
  | 'lease_lost'
  | 'hand_back'
  | 'release'
  | 'retry_due'
  | 'suspend'
  | 'resume'
  | 'new_generation'
  | 'cancel'
  | 'deadline'
  | 'skip'
  | 'hold'
  | 'dependencies_met';

export interface Edge {
  /** `null`: the task does not exist yet. */
  readonly from: TaskStatus | null;
  readonly to: TaskStatus;
  readonly by: readonly EdgeIntent[];
}

export const EDGES: readonly Edge[] = [
  { from: null, to: 'queued', by: ['submit'] },
  { from: 'queued', to: 'waiting_dependency', by: ['hold'] },
  { from: 'queued', to: 'running', by: ['claim'] },
  { from: 'queued', to: 'skipped', by: ['skip'] },
  { from: 'queued', to: 'suspended', by: ['suspend'] },
  { from: 'queued', to: 'cancelled', by: ['cancel'] },
  { from: 'queued', to: 'timed_out', by: ['deadline'] },
  { from: 'queued', to: 'failed', by: ['settle'] },
  { from: 'waiting_dependency', to: 'queued', by: ['dependencies_met'] },
  { from: 'waiting_dependency', to: 'skipped', by: ['skip'] },
  { from: 'waiting_dependency', to: 'suspended', by: ['suspend'] },
  { from: 'waiting_dependency', to: 'cancelled', by: ['cancel'] },
  { from: 'waiting_dependency', to: 'timed_out', by: ['deadline'] },
  { from: 'waiting_dependency', to: 'failed', by: ['settle'] },
  { from: 'running', to: 'completed', by: ['settle'] },
  { from: 'running', to: 'failed', by: ['settle', 'retry', 'lease_lost', 'hand_back'] },
  { from: 'running', to: 'timed_out', by: ['settle', 'deadline'] },
  { from: 'running', to: 'cancelled', by: ['settle', 'retry', 'lease_lost', 'hand_back', 'release', 'deadline'] },
  { from: 'running', to: 'retry_wait', by: ['retry', 'lease_lost', 'hand_back', 'release'] },
  { from: 'running', to: 'suspended', by: ['suspend'] },
  { from: 'retry_wait', to: 'queued', by: ['retry_due'] },
  { from: 'retry_wait', to: 'suspended', by: ['suspend'] },
  { from: 'retry_wait', to: 'cancelled', by: ['cancel'] },
  { from: 'retry_wait', to: 'timed_out', by: ['deadline'] },
  { from: 'retry_wait', to: 'failed', by: ['settle'] },
  { from: 'suspended', to: 'queued', by: ['resume', 'new_generation'] },
  { from: 'suspended', to: 'waiting_dependency', by: ['resume'] },
  { from: 'suspended', to: 'cancelled', by: ['cancel'] },
  { from: 'suspended', to: 'timed_out', by: ['deadline'] },
  { from: 'suspended', to: 'failed', by: ['settle'] },
  { from: 'completed', to: 'queued', by: ['new_generation'] },
  { from: 'failed', to: 'queued', by: ['new_generation'] },
  { from: 'timed_out', to: 'queued', by: ['new_generation'] },
  { from: 'cancelled', to: 'queued', by: ['new_generation'] },
  { from: 'skipped', to: 'queued', by: ['new_generation'] },
];

const declared = new Map(EDGES.map((edge) => [`${edge.from ?? ''}>${edge.to}`, new Set(edge.by)]));

/** Whether `from → to` is declared at all, by whichever intent. */
export function isDeclaredEdge(from: TaskStatus | null, to: TaskStatus): boolean {
  return declared.has(`${from ?? ''}>${to}`);
}

/** Whether this intent may take `from → to`. */
export function mayTake(from: TaskStatus | null, to: TaskStatus, by: EdgeIntent): boolean {
  return declared.get(`${from ?? ''}>${to}`)?.has(by) ?? false;
}
