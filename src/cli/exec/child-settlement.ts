/**
 * How a child program's end becomes the attempt's: its own word first, then its exit code. One table, tested by itself.
 *
 * | it said              | it ended with        | the attempt                                                     |
 * | an ending            | anything             | that ending, with the exit code                                 |
 * | what may be one,     | 0                    | failed, `ending_rejected`: its result must not get lost quietly |
 * | and was refused      |                      |                                                                 |
 * | too much that was    | anything             | failed, `too_many_rejected_lines`, for good                     |
 * | refused              |                      |                                                                 |
 * | nothing              | 0                    | completed, without a result                                     |
 * | nothing              | 75 (EX_TEMPFAIL)     | failed, `temporary_failure`, to be tried again                  |
 * | nothing              | a signal, or 129–192 | failed, `killed`, to be tried again                             |
 * | nothing              | any other code       | failed, `exit_code`, for good                                   |
 * | nothing              | after it was stopped | what it was stopped for                                         |
 */
import { constants } from 'node:os';
import type { ExecutionDetail } from '../../sdk/settlement.js';
import { CancelTask, Completion, NonRetryable, OutOfTime, Suspend, TaskFailure } from '../../sdk/worker/outcomes.js';
import { CancelRequested } from '../../sdk/worker/stop-reasons.js';
import type { ChildExit } from './child-process.js';
import { type Ending, MAX_REJECTED_LINES, type Rejected } from './saying.js';

/** sysexits.h: try again later. */
export const EX_TEMPFAIL = 75;
/** The highest signal there is. */
const MAX_SIGNAL = 64;

export interface ChildReport {
  readonly exit: ChildExit;
  readonly ending: Ending | undefined;
  /** What was, or may have been, to end the task, and was not taken. */
  readonly refusedEnding: Rejected | undefined;
  /** It was killed because so many of its lines were rejected. */
  readonly flooded: boolean;
  /** The tail of its stderr. */
  readonly stderr: string;
}

/** Returns what completes the task, or throws the outcome. @param stopReason why it was stopped, if it was. */
export function settleChild(report: ChildReport, stopReason: unknown): Completion {
  const { exit, ending, refusedEnding } = report;
  const exitCode = exitCodeOf(exit);
  if (ending !== undefined) return settleAsSaid(ending, exitCode, report.stderr);
  const failed = { ...exitCode, ...(report.stderr !== '' && { errorDetail: report.stderr }) };
  if (stopReason instanceof CancelRequested) throw new CancelTask(stopReason.summary, failed);
  if (stopReason instanceof Error) throw stopReason;
  if (exit.startFailure !== undefined) throw startFailed(exit.startFailure);
  if (report.flooded) {
    throw new NonRetryable(`more than ${MAX_REJECTED_LINES} lines of its stdout were rejected`, {
      code: 'too_many_rejected_lines',
      ...failed,
    });
  }
  const signal = exit.signal ?? signalOf(exit.code);
  if (signal !== undefined) throw new TaskFailure(`the program was killed by ${signal}`, { code: 'killed', ...failed });
  if (exit.code === EX_TEMPFAIL) {
    throw new TaskFailure('the program asked for another attempt', { code: 'temporary_failure', ...failed });
  }
  if (exit.code !== 0) {
    throw new NonRetryable(`the program ended with exit code ${String(exit.code)}`, { code: 'exit_code', ...failed });
  }
  if (refusedEnding !== undefined) {
    throw new NonRetryable(`the program's last word was refused: ${refusedEnding.message}`, {
      code: 'ending_rejected',
      ...failed,
    });
  }
  return new Completion(exitCode);
}

/** What the shell between us and the program tells of a signal that ended that. */
function signalOf(code: number | undefined): string | undefined {
  if (code === undefined || code <= 128 || code > 128 + MAX_SIGNAL) return undefined;
  const number = code - 128;
  const known = Object.entries(constants.signals).find(([, each]) => each === number);
  return known?.[0] ?? `signal ${number}`;
}

/** As shells have it: 128 and the number of the signal. */
function exitCodeOf({ code, signal }: ChildExit): ExecutionDetail {
  if (code !== undefined) return { exitCode: code };
  return signal === undefined ? {} : { exitCode: 128 + constants.signals[signal] };
}

export function startFailed(message: string): TaskFailure {
  return new TaskFailure(`the program could not be started: ${message}`, { code: 'start_failed' });
}

function settleAsSaid(ending: Ending, exitCode: ExecutionDetail, stderr: string): Completion {
  const detail: ExecutionDetail = { ...exitCode, ...(stderr !== '' && { errorDetail: stderr }) };
  switch (ending.kind) {
    case 'completed':
      return new Completion({
        ...exitCode,
        ...(ending.result !== undefined && { result: ending.result }),
        ...(ending.resultRef !== undefined && { resultRef: ending.resultRef }),
      });
    case 'failed': {
      const { code, message, retryable, details } = ending.error;
      const { retryAfterMs } = ending;
      throw new TaskFailure(message, {
        code,
        message,
        retryable,
        ...(details !== undefined && { details }),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
        ...detail,
      });
    }
    case 'cancelled':
      throw new CancelTask(ending.reason, detail);
    case 'timed_out':
      throw new OutOfTime(ending.error?.message ?? 'the program ran out of time', detail);
    case 'suspended':
      throw new Suspend(ending.reason);
  }
}
