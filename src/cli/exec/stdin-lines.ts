/**
 * What a child program reads on its stdin, one JSON object per line, each with a `type`:
 *
 * - `reeve.claim`, first and once: the task it is to do.
 * - `event.rejected`, for each line of its stdout that had no effect: which, and why.
 * - `task.cancel.requested`, when the task is to stop; SIGTERM comes with it.
 */
import type { Rejected } from './saying.js';

/** The claim as the program gets it. JSON texts are passed through as they are, so that no number is rounded. */
export interface ClaimFields {
  readonly taskId: string;
  readonly generation: number;
  /** With the generation, the fencing token for outside resources. */
  readonly epoch: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly kind: string;
  readonly namespace: string;
  readonly queue: string;
  readonly argsJson: string;
  /** What an earlier attempt saved; empty: nothing, `null` on the line. */
  readonly checkpointJson: string;
  /** What the last Resume brought; empty: nothing, `null` on the line. */
  readonly resumeInputJson: string;
  /** When the time of this attempt is up; undefined: never, `null` on the line. */
  readonly deadline: Date | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

export function claimLine(claim: ClaimFields): string {
  const members: readonly (readonly [name: string, json: string])[] = [
    ['type', '"reeve.claim"'],
    ['task_id', JSON.stringify(claim.taskId)],
    ['generation', String(claim.generation)],
    ['epoch', String(claim.epoch)],
    ['attempt', String(claim.attempt)],
    ['max_attempts', String(claim.maxAttempts)],
    ['kind', JSON.stringify(claim.kind)],
    ['namespace', JSON.stringify(claim.namespace)],
    ['queue', JSON.stringify(claim.queue)],
    ['args', oneLine(claim.argsJson, '{}')],
    ['checkpoint', oneLine(claim.checkpointJson, 'null')],
    ['resume_input', oneLine(claim.resumeInputJson, 'null')],
    ['deadline', JSON.stringify(claim.deadline ?? null)],
    ['labels', JSON.stringify(claim.labels)],
  ];
  return `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

/** A line break in JSON text can only stand between tokens. */
function oneLine(json: string, whenEmpty: string): string {
  return json === '' ? whenEmpty : json.replace(/[\r\n]+/g, ' ');
}

export interface RejectedLine extends Rejected {
  readonly taskId: string;
  /** Of the program's stdout, from 1. */
  readonly lineNumber: number;
  /** The `id` that the line had. */
  readonly eventId: string | undefined;
}

export function rejectedLine({ taskId, lineNumber, eventId, code, message, details = {} }: RejectedLine): string {
  return JSON.stringify({
    type: 'event.rejected',
    task_id: taskId,
    payload: {
      task_id: taskId,
      acknowledged_event_id: eventId ?? null,
      line: lineNumber,
      error: { code, message, retryable: false, details },
    },
  });
}

export function cancelLine(taskId: string, reason: string): string {
  return JSON.stringify({ type: 'task.cancel.requested', task_id: taskId, payload: { task_id: taskId, reason } });
}
