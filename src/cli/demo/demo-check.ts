/**
 * The demo's own proof: every task is read back with its whole history and compared with what it should have become.
 * Counts are made again here, from the files themselves.
 */
import type { ReeveClient, Task, TaskEvent, TaskStatusWord } from '../../sdk/client.js';
import { isTerminal } from '../../sdk/client.js';
import { countFile, describeFile, type SourceFile } from './source-files.js';

export interface Expectation {
  readonly taskId: string;
  readonly name: string;
  readonly status: TaskStatusWord;
  /** Default: 1. */
  readonly attempts?: number;
  /** The result is the count of this file. */
  readonly counted?: CountedFile;
  readonly notFinishedBy?: string;
  readonly ownerStopped?: 'confirmed' | 'unconfirmed';
}

export interface CountedFile extends SourceFile {
  readonly root: string;
}

export interface Checked {
  readonly task: Task;
  readonly events: readonly TaskEvent[];
  /** Empty: as it should be. */
  readonly problems: readonly string[];
}

export async function checkTask(reeve: ReeveClient, expected: Expectation): Promise<Checked> {
  const task = await reeve.get(expected.taskId);
  const events: TaskEvent[] = [];
  for await (const event of reeve.events(expected.taskId)) events.push(event);
  const found = [
    ...historyProblems(task, events),
    ...endProblems(task, events, expected),
    ...(expected.counted === undefined ? [] : await countProblems(task, events, expected.counted)),
  ];
  return { task, events, problems: found.map((problem) => `${expected.name}: ${problem}`) };
}

/** What holds for any finished task. */
export function historyProblems(task: Task, events: readonly TaskEvent[]): readonly string[] {
  const problems: string[] = [];
  const revisions = events.filter(({ revision }) => revision > 0).map(({ revision }) => revision);
  if (!countsUp(events.map(({ eventNumber }) => eventNumber))) problems.push('its event numbers have gaps');
  if (!countsUp(revisions)) problems.push('its revisions have gaps');
  if (!ascends(events.map(({ sequence }) => sequence))) problems.push('its sequences do not ascend');
  if (events.length !== task.lastEventNumber) problems.push('its last event number is not that of its last event');
  if (revisions.length !== task.revision) problems.push('its revision is not the number of its facts');
  const endings = events.filter(({ toStatus, fromStatus }) => isTerminal(toStatus) && toStatus !== fromStatus);
  if (endings.length !== 1 || endings[0] !== events.at(-1))
    problems.push('its history does not end with its one ending');
  return problems;
}

function endProblems(task: Task, events: readonly TaskEvent[], expected: Expectation): readonly string[] {
  const problems: string[] = [];
  if (task.status !== expected.status) problems.push(`it is ${task.status} and not ${expected.status}`);
  const attempts = expected.attempts ?? 1;
  if (task.attempt !== attempts) problems.push(`it took ${task.attempt} attempts and not ${attempts}`);
  const workers = claimants(events);
  if (workers.length !== attempts) problems.push(`it was claimed ${workers.length} times and not ${attempts}`);
  const last = workers.at(-1);
  if (expected.notFinishedBy !== undefined && last === expected.notFinishedBy) problems.push(`it ended on ${last}`);
  if (expected.ownerStopped !== undefined && task.cancellation?.ownerStopped !== expected.ownerStopped) {
    problems.push(`its owner's stop is ${task.cancellation?.ownerStopped ?? 'not told'}`);
  }
  return problems;
}

async function countProblems(
  task: Task,
  events: readonly TaskEvent[],
  { root, path, writtenMs }: CountedFile,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const counted = await countFile(root, path);
  // Somebody may be at work on these files; what was counted then cannot be counted now.
  const unchanged = describeFile(root, path).writtenMs === writtenMs;
  if (unchanged && sortedJson(task.result) !== sortedJson(counted)) {
    problems.push(`its result is ${task.resultJson}, the file says ${JSON.stringify(counted)}`);
  }
  if (!events.some(({ type }) => type === 'task.output')) problems.push('it has no output');
  return problems;
}

/** The names of the workers that held it, in order. */
export function claimants(events: readonly TaskEvent[]): readonly string[] {
  return events.flatMap(({ type, payload }) => {
    if (type !== 'reeve.task.claimed' || typeof payload !== 'object' || payload === null) return [];
    return 'worker' in payload && typeof payload.worker === 'string' ? [payload.worker] : [];
  });
}

function sortedJson(value: unknown): string {
  return typeof value === 'object' && value !== null
    ? JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : JSON.stringify(value);
}

function countsUp(numbers: readonly number[]): boolean {
  return numbers.every((number, at) => number === at + 1);
}

function ascends(numbers: readonly number[]): boolean {
  return numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0));
}
