/**
 * The flags that describe tasks, and the TaskFilter they make: one description for every command that takes many.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type TaskStatus, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import type { TaskFilterSchema } from '../../gen/reeve/v1/task_service_pb.js';
import type { GlobalOptions } from '../command-host.js';
import { collectEnum, collectList, collectPair, enumWords, parseMoment } from './argument-parsers.js';
import { parseDuration } from './duration.js';

export interface FilterOptions {
  readonly queue?: string;
  readonly status?: readonly TaskStatus[];
  readonly kind?: readonly string[];
  readonly label?: Readonly<Record<string, string>>;
  readonly parent?: string;
  readonly concurrencyKey?: string;
  readonly schedule?: string;
  readonly since?: Date;
  readonly before?: Date;
}

// No schedules yet: who asks is told UNSUPPORTED by the service, and nobody is invited to ask.
export function addFilterOptions(command: Command): Command {
  return command
    .option('--queue <name>', 'of this queue')
    .option('--status <word>', `repeatable: ${enumWords(TaskStatusSchema).join(', ')}`, collectEnum(TaskStatusSchema))
    .option('--kind <kind>', 'of this kind; repeatable', collectList)
    .option('--label <key=value>', 'with this label; repeatable', collectPair)
    .option('--parent <task-id>', 'children of this task')
    .option('--concurrency-key <key>', 'under this key')
    .addOption(new Option('--schedule <id>', 'made by this schedule').hideHelp())
    .option('--since <moment|duration>', 'admitted since; a duration counts back from now', momentOrAgo)
    .option('--before <moment|duration>', 'admitted before', momentOrAgo);
}

/** Whether any flag describes something: without one, every task of the namespace is meant. */
export function isDescribed(options: FilterOptions): boolean {
  const { queue, status, kind, label, parent, concurrencyKey, schedule, since, before } = options;
  return [queue, status, kind, label, parent, concurrencyKey, schedule, since, before].some(
    (flag) => flag !== undefined,
  );
}

export function filterOf(options: FilterOptions & GlobalOptions): MessageInitShape<typeof TaskFilterSchema> {
  return {
    namespace: options.namespace,
    queue: options.queue ?? '',
    statuses: [...(options.status ?? [])],
    actionKinds: [...(options.kind ?? [])],
    labels: { ...options.label },
    parentTaskId: options.parent ?? '',
    concurrencyKey: options.concurrencyKey ?? '',
    scheduleId: options.schedule ?? '',
    ...(options.since !== undefined && { createdFrom: timestampFromDate(options.since) }),
    ...(options.before !== undefined && { createdBefore: timestampFromDate(options.before) }),
  };
}

/** A moment, or a duration back from now. */
function momentOrAgo(text: string): Date {
  if (text.includes('T')) return parseMoment(text);
  try {
    return new Date(Date.now() - parseDuration(text));
  } catch {
    throw new InvalidArgumentError('A moment (2026-05-01T08:00:00Z) or a duration back from now (90m).');
  }
}
