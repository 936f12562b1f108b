/**
 * What became of a submission, and its reading from the wire.
 */
import { status } from '@grpc/grpc-js';
import type * as pb from '../../gen/reeve/v1/task_pb.js';
import { SubmitOutcome, type SubmitResponse } from '../../gen/reeve/v1/task_service_pb.js';
import { ReeveError } from '../transport/reeve-error.js';
import type { EventRef, TaskName } from './task.js';
import { readEventRef, readTaskName } from './task-codec.js';

export interface Submitted<T extends TaskName = TaskName> {
  readonly task: T;
  /** New; false when the key was known and nothing was changed. */
  readonly created: boolean;
  readonly transitionId: string;
  /** The event of admission. On a replay, the original. */
  readonly event: EventRef | undefined;
  /** Of a replay: policy fields that differ from the task's and were not applied. */
  readonly ignoredPolicyFields: readonly string[];
}

export function readSubmitted(response: SubmitResponse): Submitted {
  return {
    task: readTaskName(requireTask(response)),
    created: response.outcome === SubmitOutcome.CREATED,
    transitionId: response.transitionId,
    event: readEventRef(response.event),
    ignoredPolicyFields: response.ignoredPolicyFields,
  };
}

/** The task of an answer that always carries one. */
export function requireTask(response: { readonly task?: pb.Task | undefined }): pb.Task {
  if (response.task !== undefined) return response.task;
  throw new ReeveError({ reason: 'INTERNAL', code: status.INTERNAL, message: 'the answer carries no task' });
}
