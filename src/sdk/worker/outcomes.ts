/**
 * The ways a handler ends other than by returning a plain result: what it may throw, and `Completion` to return.
 * Anything else that is thrown fails the attempt, retryable.
 */
import type { CompletionInput, ExecutionDetail, FailureInput } from '../settlement.js';

/** Return it to complete with more than a result: a `resultRef`, an exit code, evidence. */
export class Completion {
  readonly input: CompletionInput;

  /** @throws TypeError for what is no object: a bare result needs no Completion. */
  constructor(input: CompletionInput = {}) {
    if (typeof input !== 'object' || input === null) {
      throw new TypeError('Completion takes an object, { result: … } for example; a bare result is returned as it is');
    }
    this.input = input;
  }
}

/** Fails the attempt with a code of its own. Retryable unless it says otherwise. */
export class TaskFailure extends Error {
  override readonly name: string = 'TaskFailure';
  readonly input: FailureInput;

  constructor(message: string, fields: Partial<FailureInput> & { readonly cause?: unknown } = {}) {
    const { cause, ...input } = fields;
    super(message, cause === undefined ? undefined : { cause });
    this.input = { code: 'handler_error', message, ...input };
  }
}

/** Fails the task at once: no further attempt would help. */
export class NonRetryable extends TaskFailure {
  override readonly name = 'NonRetryable';

  constructor(message: string, fields: Partial<FailureInput> & { readonly cause?: unknown } = {}) {
    super(message, { ...fields, retryable: false });
  }
}

/** Fails the attempt; the next one, if there is one left, comes after `ms` and not after the policy's wait. */
export class RetryLater extends TaskFailure {
  override readonly name = 'RetryLater';

  /** @param ms 0 … 10 years. */
  constructor(ms: number, message = 'the handler asked for another attempt later') {
    super(message, { code: 'retry_later', retryable: true, retryAfterMs: ms });
  }
}

/** Holds the task until somebody resumes it, and gives the attempt back. Save a checkpoint before. */
export class Suspend extends Error {
  override readonly name = 'Suspend';

  /** @param reason what it waits for. At most 1 KiB; longer text is cut. */
  constructor(readonly reason: string) {
    super(reason);
  }
}

/** Settles the task as cancelled, asked or unasked. */
export class CancelTask extends Error {
  override readonly name = 'CancelTask';

  constructor(
    readonly reason = '',
    readonly detail: ExecutionDetail = {},
  ) {
    super(reason);
  }
}

/** Settles the task as timed out, for good, by the handler's own judgement. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime';

  constructor(
    message: string,
    readonly detail: ExecutionDetail = {},
  ) {
    super(message);
  }
}
