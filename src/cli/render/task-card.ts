/**
 * One task for a person: a name-value list of what is set, the important first. `--json` has everything.
 */
import { type Task, TaskStatus, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { AdmissionSourceSchema, CancellationState, ExecutionTargetSchema } from '../../gen/reeve/v1/task_pb.js';
import { CancellationStateSchema, OwnerStoppedSchema, OwnerStopped } from '../../gen/reeve/v1/task_pb.js';
import { enumWord } from '../options/argument-parsers.js';
import { compactJson } from './message-json.js';
import { between, fromNow, isoTime } from './moment.js';
import { clipText, plainLines, plainText } from './plain-text.js';
import { progressBar } from './progress-bar.js';
import { type Style, tintOfStatus } from './style.js';

const JSON_WIDTH = 400;
const ERROR_DETAIL_LINES = 12;

type Entry = readonly [name: string, value: string];

export function taskCard(task: Task, nowMs: number, style: Style): readonly string[] {
  const entries = [...positionEntries(task, nowMs, style), ...contentEntries(task), ...timeEntries(task, nowMs)];
  const shown = entries.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  const lines = shown.map(([name, value]) => `${style('dim', name.padEnd(width))}  ${value}`);
  if (task.errorDetail === '') return lines;
  const detail = plainLines(task.errorDetail).slice(-ERROR_DETAIL_LINES);
  return [...lines, style('dim', 'error detail'), ...detail.map((line) => `  ${line}`)];
}

function positionEntries(task: Task, nowMs: number, style: Style): readonly Entry[] {
  const { lease, phase, reason, cancellation, error } = task;
  const status = style(tintOfStatus(task.status), enumWord(TaskStatusSchema, task.status));
  const attempts = task.maxAttempts > 0 ? `attempt ${task.attempt} of ${task.maxAttempts}` : '';
  return [
    ['task', plainText(task.taskId)],
    ['status', [status, attempts, task.purged ? 'purged' : ''].filter((part) => part !== '').join(', ')],
    ['reason', reason === undefined ? '' : plainText(`${reason.code}: ${reason.summary}`)],
    ['worker', lease === undefined ? '' : `${plainText(lease.workerName)} (epoch ${String(lease.epoch)})`],
    [
      'progress',
      task.status === TaskStatus.RUNNING && phase?.progress !== undefined ? progressBar(phase.progress, 24) : '',
    ],
    ['message', clipText(phase?.message ?? '', JSON_WIDTH)],
    ['blocked', plainText(phase?.blockedReason ?? '')],
    ['cancellation', cancellation === undefined ? '' : cancellationText(cancellation, nowMs)],
    ['error', error === undefined ? '' : clipText(`${error.code}: ${error.message}`, JSON_WIDTH)],
    ['exit code', task.exitCode === undefined ? '' : String(task.exitCode)],
    ['result', task.resultJson === '' ? '' : clipText(compactJson(task.resultJson), JSON_WIDTH)],
    ['result at', plainText(task.resultRef)],
  ];
}

function cancellationText(cancellation: NonNullable<Task['cancellation']>, nowMs: number): string {
  if (cancellation.state === CancellationState.NONE) return '';
  const parts = [enumWord(CancellationStateSchema, cancellation.state)];
  if (cancellation.requestTime !== undefined) parts.push(`asked ${fromNow(cancellation.requestTime, nowMs)}`);
  if (cancellation.deliveredTime !== undefined) parts.push('delivered');
  if (cancellation.acknowledgedTime !== undefined) parts.push('acknowledged');
  if (cancellation.ownerStopped !== OwnerStopped.UNSPECIFIED) {
    parts.push(`owner stopped: ${enumWord(OwnerStoppedSchema, cancellation.ownerStopped)}`);
  }
  return parts.join(', ');
}

function contentEntries(task: Task): readonly Entry[] {
  const { application, generation, admission } = task;
  const labels = Object.entries(task.labels).map(([name, value]) => plainText(`${name}=${value}`));
  return [
    ['kind', plainText(application?.actionKind ?? '')],
    ['target', application === undefined ? '' : enumWord(ExecutionTargetSchema, application.executionTarget)],
    ['args', clipText(application?.argsJson ?? '', JSON_WIDTH)],
    ['namespace', task.namespace],
    ['queue', task.queue],
    ['key', plainText(task.idempotencyKey)],
    ['labels', labels.join(', ')],
    ['description', clipText(task.policy?.description ?? '', JSON_WIDTH)],
    ['priority', (task.policy?.priority ?? 0) === 0 ? '' : String(task.policy?.priority)],
    ['generation', generation === undefined ? '' : `${generation.number} (${plainText(generation.id)})`],
    ['revision', `${String(task.revision)}, ${String(task.lastEventNumber)} events`],
    ['source', admission === undefined ? '' : enumWord(AdmissionSourceSchema, admission.source)],
  ];
}

function timeEntries(task: Task, nowMs: number): readonly Entry[] {
  const when = (time: Task['createTime']) => (time === undefined ? '' : `${isoTime(time)} (${fromNow(time, nowMs)})`);
  return [
    ['created', when(task.createTime)],
    ['started', when(task.startTime)],
    ['finished', when(task.finishTime)],
    ['took', between(task.startTime, task.finishTime)],
    ['not before', when(task.timers?.notBefore)],
    ['next attempt', when(task.timers?.retryTime)],
    ['deadline', when(task.timers?.deadline)],
  ];
}
