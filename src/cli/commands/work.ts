/**
 * `reeve work --exec`: a worker for programs without gRPC. Any language that can read a line and print one is a
 * worker; examples/shell/README.md documents the lines.
 */
import { constants } from 'node:os';
import type { Command } from 'commander';
import { ExecutionTargetSchema } from '../../gen/reeve/v1/task_pb.js';
import { MAX_TIMER_MS } from '../../sdk/transport/option-checks.js';
import {
  createWorker,
  type JsonObject,
  type Settled,
  type WorkerNotice,
  type WorkerOptions,
} from '../../sdk/worker.js';
import { type CommandHost, type GlobalOptions, optionsOf } from '../command-host.js';
import { runChildAttempt } from '../exec/child-attempt.js';
import { killRunningChildren } from '../exec/child-process.js';
import { logJson, noticeText } from '../exec/notice-text.js';
import { EXIT } from '../exit-codes.js';
import { collectList, enumWord, enumWords, integerBetween, collectEnum } from '../options/argument-parsers.js';
import { durationBetween, parseDuration } from '../options/duration.js';
import { packageVersion } from '../package-root.js';
import { plainText } from '../render/plain-text.js';
import { UsageError } from '../usage-error.js';

const DEFAULT_KILL_AFTER_MS = 10_000;
const DEFAULT_DRAIN_GRACE_MS = 30_000;
/** SIGHUP too: a terminal that is closed must not leave programs behind that nobody listens to. */
const DRAIN_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** After a child was killed: to tell the service before the worker leaves. */
const AFTER_KILL_MS = 1_000;
/** From a terminal's columns to a program's lines: what a program prints by mistake would flood the log. */
const REJECTIONS_LOGGED_PER_TASK = 5;

interface WorkOptions {
  readonly kind: readonly string[];
  readonly exec: string;
  readonly slots: number;
  readonly queue?: readonly string[];
  readonly target?: readonly number[];
  readonly capability?: readonly string[];
  readonly name?: string;
  readonly ttl?: number;
  readonly killAfter?: number;
  readonly drainGrace?: number;
  readonly closeStdin?: boolean;
}

export function addWork(program: Command, host: CommandHost): void {
  const command = program
    .command('work')
    .summary('do tasks with a program of your own')
    .description(
      'Runs a program for every task: the claim as one JSON line on its stdin, AEP events as JSON lines from its ' +
        'stdout, SIGTERM on cancel, its exit code as the settlement (0 completed, 75 try again, else failed). ' +
        'SIGTERM, SIGINT or SIGHUP drains; a second one stops at once. The lines: examples/shell/README.md.',
    )
    .requiredOption('--kind <kind>', "action kind to serve, '*' for all; repeatable", collectList)
    .requiredOption('--exec <command>', 'what to run, by /bin/sh -c')
    .option('--slots <n>', 'how many at once', integerBetween(1, 10_000), 1)
    .option('--queue <name>', 'queue to serve; repeatable; all unless given', collectList)
    .option(
      '--target <word>',
      `execution target to serve; repeatable; all unless given: ${enumWords(ExecutionTargetSchema).join(', ')}`,
      collectEnum(ExecutionTargetSchema),
    )
    .option('--capability <word>', 'what this worker has; repeatable', collectList)
    .option('--name <name>', 'for people; host name and process id unless given')
    .option('--ttl <duration>', 'life of the session without a heartbeat, 2s … 10m (default: 30s)', TTL)
    .option('--kill-after <duration>', 'from SIGTERM to SIGKILL of a program (default: 10s)', parseDuration)
    .option('--drain-grace <duration>', 'how long a drain lets programs finish (default: 30s)', parseDuration)
    .option('--close-stdin', 'end stdin after the claim, for programs that read to its end');
  command.action(async () => {
    const options = optionsOf<WorkOptions>(command);
    const log = workLog(host, options.json);
    const worker = createWorker({ ...workerOptions(options, log), onNotice: log.notice, onSettled: log.settled });
    // `| tee log` hears the same Ctrl-C, and what is running must still be handed back.
    host.terminal.outliveReaders();
    killChildrenWithThisProcess();
    await worker.run();
    host.end(EXIT.ok);
  });
}

/** However it ends, but for what nobody hears: SIGKILL, an abort of the runtime. Then programs see their stdin end. */
function killChildrenWithThisProcess(): void {
  process.once('exit', killRunningChildren);
  // Unheard it is an end without `exit`.
  process.once('SIGQUIT', () => process.exit(128 + constants.signals.SIGQUIT));
}

const TTL = durationBetween(2_000, 600_000, 'from 2s to 10m');

interface WorkLog {
  readonly notice: (notice: WorkerNotice) => void;
  readonly settled: (settled: Settled) => void;
  readonly line: (type: string, text: string, fields: object) => void;
}

function workLog({ terminal }: CommandHost, json: boolean): WorkLog {
  const line = (type: string, text: string, fields: object) =>
    terminal.line(json ? logJson({ type, ...fields }) : `${new Date().toISOString()}  ${plainText(text)}`);
  return {
    line,
    notice: (notice) => line(notice.type, noticeText(notice), notice),
    settled: (settled) => line('settled', `task ${settled.taskId} ${settled.as}`, settled),
  };
}

function workerOptions(options: WorkOptions & GlobalOptions, log: WorkLog): WorkerOptions<Record<string, JsonObject>> {
  const { killAfter = DEFAULT_KILL_AFTER_MS, drainGrace = DEFAULT_DRAIN_GRACE_MS } = options;
  // Beyond it a timer is none: the program would be killed at once.
  const killAfterMs = Math.min(killAfter, MAX_TIMER_MS);
  if (options.exec.trim() === '') throw new UsageError('--exec is empty');
  const rejections = new Map<string, number>();
  const handler: WorkerOptions<Record<string, JsonObject>>['handlers'][string] = async (claim, context) => {
    log.line('claimed', `task ${claim.taskId} claimed, attempt ${claim.attempt} of ${claim.maxAttempts}`, {
      taskId: claim.taskId,
      generation: claim.generation,
      epoch: claim.epoch,
      attempt: claim.attempt,
    });
    try {
      return await runChildAttempt(claim, context, {
        command: options.exec,
        killAfterMs,
        closeStdin: options.closeStdin === true,
        onRejected: (taskId, lineNumber, rejected) => {
          const count = (rejections.get(taskId) ?? 0) + 1;
          rejections.set(taskId, count);
          if (count > REJECTIONS_LOGGED_PER_TASK) return;
          log.line('line_rejected', `task ${taskId}: line ${lineNumber} rejected: ${rejected.message}`, {
            taskId,
            line: lineNumber,
            ...rejected,
          });
        },
      });
    } finally {
      rejections.delete(claim.taskId);
    }
  };
  return {
    address: options.address,
    handlers: Object.fromEntries(options.kind.map((kind) => [kind, handler])),
    slots: options.slots,
    version: packageVersion(),
    namespaces: options.namespace === '' ? [] : [options.namespace],
    signals: DRAIN_SIGNALS,
    drainGraceMs: drainGrace,
    // A program gets the whole of its time between the two signals before the task is handed back.
    drainStopMs: killAfterMs + AFTER_KILL_MS,
    ...(options.name !== undefined && { name: options.name }),
    ...(options.queue !== undefined && { queues: options.queue }),
    ...(options.capability !== undefined && { capabilities: options.capability }),
    ...(options.ttl !== undefined && { ttlMs: options.ttl }),
    ...(options.target !== undefined && {
      executionTargets: options.target.map((target) => targetWord(enumWord(ExecutionTargetSchema, target))),
    }),
  };
}

type TargetWord = NonNullable<WorkerOptions<object>['executionTargets']>[number];

function targetWord(word: string): TargetWord {
  switch (word) {
    case 'host':
    case 'local_worktree':
    case 'daytona':
    case 'remote_agent':
    case 'process':
      return word;
    default:
      throw new UsageError(`unknown execution target ${word}`);
  }
}
