/**
 * The one table of exit codes: what a shell script may rely on, and what `reeve --help` shows. Every command ends
 * with one of these and with nothing else.
 */
import { status } from '@grpc/grpc-js';
import { TaskStatus } from '../gen/reeve/v1/task_pb.js';

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  unavailable: 5,
  cancelled: 6,
  timedOut: 7,
  stillGoing: 8,
  internal: 70,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** In the order of the codes, for --help. */
export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, 'done as asked; a task that was waited for completed'],
  [EXIT.failed, 'the task failed; the service could not start; the demo or a check did not hold'],
  [EXIT.usage, 'the command line or what it carries is malformed'],
  [EXIT.notFound, 'no such task'],
  [EXIT.refused, 'refused: a conflict, a guard that does not hold, a move that the lifecycle does not have'],
  [EXIT.unavailable, 'no answer: away, overloaded or draining; try again with the same key'],
  [EXIT.cancelled, 'the task ended as cancelled or skipped'],
  [EXIT.timedOut, 'the task ended as timed out'],
  [EXIT.stillGoing, 'stopped waiting; the task goes on'],
  [EXIT.internal, 'a damaged record (reeve verify), or a defect, of Reeve or of this program'],
  [EXIT.interrupted, 'ended by a signal'],
];

/** The code for how a task stands when a command that waited for it ends. */
export function exitForStatus(taskStatus: TaskStatus): ExitCode {
  switch (taskStatus) {
    case TaskStatus.COMPLETED:
      return EXIT.ok;
    case TaskStatus.FAILED:
      return EXIT.failed;
    case TaskStatus.TIMED_OUT:
      return EXIT.timedOut;
    case TaskStatus.CANCELLED:
    case TaskStatus.SKIPPED:
      return EXIT.cancelled;
    case TaskStatus.UNSPECIFIED:
    case TaskStatus.QUEUED:
    case TaskStatus.WAITING_DEPENDENCY:
    case TaskStatus.RUNNING:
    case TaskStatus.RETRY_WAIT:
    case TaskStatus.SUSPENDED:
      return EXIT.stillGoing;
  }
}

/** The code for a call that ended with this gRPC status. */
export function exitForGrpc(code: status): ExitCode {
  switch (code) {
    case status.OK:
      return EXIT.ok;
    case status.INVALID_ARGUMENT:
      return EXIT.usage;
    case status.NOT_FOUND:
      return EXIT.notFound;
    case status.ALREADY_EXISTS:
    case status.FAILED_PRECONDITION:
    case status.OUT_OF_RANGE:
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
    case status.UNIMPLEMENTED:
      return EXIT.refused;
    case status.ABORTED:
    case status.RESOURCE_EXHAUSTED:
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
      return EXIT.unavailable;
    case status.CANCELLED:
      return EXIT.interrupted;
    case status.UNKNOWN:
    case status.INTERNAL:
    case status.DATA_LOSS:
      return EXIT.internal;
  }
}

/** Lines for --help. */
export function exitCodeHelp(): string {
  const lines = EXIT_MEANINGS.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`);
  return ['Exit codes:', ...lines].join('\n');
}
