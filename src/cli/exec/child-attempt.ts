/**
 * One attempt done by a child program: claim in, events out, end told. A handler for the SDK's worker; it knows nothing
 * of sessions, leases or the wire.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Claim } from '../../sdk/worker/claim.js';
import type { HandlerContext } from '../../sdk/worker/handler.js';
import { isReeveError } from '../../sdk/transport/reeve-error.js';
import { CancelRequested, LeaseLost } from '../../sdk/worker/stop-reasons.js';
import { AttemptState } from './attempt-state.js';
import { ChildGroup } from './child-process.js';
import { type ChildReport, settleChild, startFailed } from './child-settlement.js';
import { type Line, LineSplitter } from './line-splitter.js';
import {
  type Ending,
  looksLikeEvent,
  MAX_LINE_BYTES,
  MAX_REJECTED_LINES,
  readLine,
  type Rejected,
  type Saying,
} from './saying.js';
import { cancelLine, claimLine, rejectedLine } from './stdin-lines.js';
import { TextTail } from './text-tail.js';

/** What is kept of a program's stderr, for `error_detail`. */
export const STDERR_TAIL_BYTES = 8 * 1_024;
/** How long a program may go on after it has said how its task ends. */
const AFTER_ENDING_MS = 5_000;
/** How long lines are taken without letting anybody else have a turn: a pipe delivers them faster than they are read. */
const TURN_MS = 20;

export interface ChildAttemptOptions {
  readonly command: string;
  /** From SIGTERM to SIGKILL, ms; a cancel's own grace holds where it is shorter. */
  readonly killAfterMs: number;
  /** Ends stdin after the claim, for programs that read to its end; they hear of no rejection. */
  readonly closeStdin: boolean;
  /** For the worker's log. */
  readonly onRejected: (taskId: string, lineNumber: number, rejected: Rejected) => void;
}

/** Resolves with what completes the task; throws the SDK's typed outcomes for every other end. */
export async function runChildAttempt(
  claim: Claim,
  context: HandlerContext,
  options: ChildAttemptOptions,
): Promise<unknown> {
  let child: ChildGroup;
  try {
    child = new ChildGroup({ command: options.command, env: environmentOf(claim) });
  } catch (error) {
    throw startFailed(error instanceof Error ? error.message : String(error));
  }
  return new ChildAttempt(claim, context, options, child).run();
}

class ChildAttempt {
  private readonly state = new AttemptState();
  private readonly stderr = new TextTail(STDERR_TAIL_BYTES);
  private ending: Ending | undefined;
  /** The last ending that was not taken; a program that ends well after it did not end well. */
  private refusedEnding: Rejected | undefined;
  /** The last line, if it was an event that was not taken: cut off or misspelt, it may have been the ending. */
  private refusedLast: Rejected | undefined;
  private rejections = 0;
  private lineNumber = 0;

  constructor(
    private readonly claim: Claim,
    private readonly context: HandlerContext,
    private readonly options: ChildAttemptOptions,
    private readonly child: ChildGroup,
  ) {}

  async run(): Promise<unknown> {
    const { claim, child, context, options } = this;
    const { signal } = context;
    const stop = () => this.stop(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    // The signal may have aborted before there was a listener.
    if (signal.aborted) stop();
    child.writeLine(claimLine(fieldsOf(claim)));
    if (options.closeStdin) child.closeStdin();
    child.stderr.on('data', (chunk: Buffer) => this.stderr.push(chunk));
    try {
      await this.readStdout();
      const exit = await child.ended;
      return settleChild(this.report(exit), signal.aborted ? signal.reason : undefined);
    } finally {
      signal.removeEventListener('abort', stop);
      // After a failure of our own, such as a lost lease while saying something.
      child.kill();
    }
  }

  private report(exit: ChildReport['exit']): ChildReport {
    return {
      exit,
      ending: this.ending,
      refusedEnding: this.refusedEnding ?? this.refusedLast,
      flooded: this.rejections > MAX_REJECTED_LINES,
      stderr: this.stderr.text(),
    };
  }

  private stop(reason: unknown): void {
    const { child, claim, options } = this;
    if (reason instanceof CancelRequested) {
      child.writeLine(cancelLine(claim.taskId, reason.summary));
      child.stop(Math.min(options.killAfterMs, reason.graceMs ?? options.killAfterMs));
    } else {
      // Somebody else may be doing the task already: no patience with a lost lease.
      child.stop(reason instanceof LeaseLost ? 0 : options.killAfterMs);
    }
  }

  /** To the end of the pipe. Waits with reading while what was said waits for room. */
  private async readStdout(): Promise<void> {
    let turnBeganMs = performance.now();
    try {
      for await (const line of this.lines()) {
        await this.takeLine(line);
        if (this.rejections > MAX_REJECTED_LINES) return this.child.kill();
        // What else this worker does must not wait for a program that prints without end: lines that come to nothing
        // wait for nothing.
        if (performance.now() - turnBeganMs < TURN_MS) continue;
        await nextTurn();
        turnBeganMs = performance.now();
      }
    } catch (error) {
      // The pipe was cut off because a process outside our reach held it open.
      if (!isPrematureClose(error)) throw error;
    }
  }

  private async *lines(): AsyncGenerator<Line, void, undefined> {
    const splitter = new LineSplitter(MAX_LINE_BYTES);
    for await (const chunk of this.child.stdout as AsyncIterable<Buffer>) yield* splitter.push(chunk);
    yield* splitter.end();
  }

  private async takeLine(line: Line): Promise<void> {
    this.lineNumber += 1;
    if (line.kind === 'too_long') {
      const message = `the line has ${line.size} bytes, more than ${MAX_LINE_BYTES}`;
      // Only contents make a line so long, and nobody can tell any more whether it was the result.
      this.refusedEnding = { code: 'MALFORMED', message };
      return this.reject(this.refusedEnding, undefined);
    }
    if (line.bytes.every((byte) => byte === 0x20 || byte === 0x09)) return;
    const read = readLine(line.bytes, this.claim.taskId);
    if (!read.ok) {
      if (read.wasEnding) this.refusedEnding = read.rejected;
      if (looksLikeEvent(line.bytes)) this.refusedLast = read.rejected;
      return this.reject(read.rejected, read.eventId);
    }
    this.refusedLast = undefined;
    const judgement = this.state.judge(read.saying);
    if (judgement === 'said') return;
    if (judgement !== 'say') {
      if (isEnding(read.saying) && this.ending === undefined) this.refusedEnding = judgement;
      this.refusedLast = judgement;
      return this.reject(judgement, read.eventId);
    }
    if (isEnding(read.saying)) {
      this.ending = read.saying;
      setTimeout(() => this.child.stop(this.options.killAfterMs), AFTER_ENDING_MS).unref();
      return;
    }
    await this.say(read.saying, read.eventId);
  }

  private async say(saying: Exclude<Saying, Ending>, eventId: string | undefined): Promise<void> {
    const { context } = this;
    try {
      switch (saying.kind) {
        case 'accepted':
          return;
        case 'started':
          return await context.unblocked();
        case 'progress':
          return await context.progress(saying.fraction, saying.message);
        case 'output':
          return await context.output(saying.output);
        case 'blocked':
          return await context.blocked(saying.reason);
        case 'checkpoint':
          return await context.checkpoint(saying.checkpoint);
      }
    } catch (error) {
      if (!isReeveError(error, 'MALFORMED')) throw error;
      this.refusedLast = { code: 'MALFORMED', message: error.message, details: error.metadata };
      this.reject(this.refusedLast, eventId);
    }
  }

  private reject(rejected: Rejected, eventId: string | undefined): void {
    const { taskId } = this.claim;
    this.rejections += 1;
    this.options.onRejected(taskId, this.lineNumber, rejected);
    this.child.writeLine(rejectedLine({ ...rejected, taskId, lineNumber: this.lineNumber, eventId }));
  }
}

function isEnding(saying: Saying): saying is Ending {
  const { kind } = saying;
  return (
    kind === 'completed' || kind === 'failed' || kind === 'cancelled' || kind === 'timed_out' || kind === 'suspended'
  );
}

function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

function fieldsOf(claim: Claim) {
  return {
    taskId: claim.taskId,
    generation: claim.generation,
    epoch: claim.epoch,
    attempt: claim.attempt,
    maxAttempts: claim.maxAttempts,
    kind: claim.kind,
    namespace: claim.namespace,
    queue: claim.queue,
    argsJson: claim.argsJson,
    checkpointJson: claim.checkpointJson,
    resumeInputJson: claim.resumeInputJson,
    deadline: claim.deadline,
    labels: claim.labels,
  };
}

/** For scripts that would rather not parse JSON. */
function environmentOf(claim: Claim): Record<string, string> {
  return {
    REEVE_TASK_ID: claim.taskId,
    REEVE_TASK_KIND: claim.kind,
    REEVE_GENERATION: String(claim.generation),
    REEVE_EPOCH: String(claim.epoch),
    REEVE_ATTEMPT: String(claim.attempt),
  };
}
