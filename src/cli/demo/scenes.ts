/**
 * What the demo does to its tasks, scene by scene, against a running service with running workers. Each scene tells
 * what it expects of the tasks it made; demo-check.ts reads them back at the end.
 */
import { isReeveError, type ReeveClient, type TaskEvent } from '../../sdk/client.js';
import { formatDuration } from '../options/duration.js';
import { shortId } from '../render/plain-text.js';
import type { Expectation } from './demo-check.js';
import { COUNT_KIND, SESSION_TTL_MS, STEPS_KIND } from './demo-tasks.js';
import { type DemoProcess } from './processes.js';
import type { SourceTree } from './source-files.js';
import type { Timeline } from './timeline.js';

export interface Stage {
  readonly reeve: ReeveClient;
  readonly timeline: Timeline;
  readonly sources: SourceTree;
  readonly workers: readonly DemoProcess[];
}

const keyOf = (path: string) => `count ${path}`;

/** One task per file, all at once; resolves when every one is over. */
export async function countEveryFile({ reeve, timeline, sources }: Stage): Promise<readonly Expectation[]> {
  const { root, files } = sources;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  timeline.step(
    `submit one task for each of ${files.length} source files (${Math.round(bytes / 1_024)} KiB) in ${root}`,
  );
  const submitted = await Promise.all(
    files.map(async (file) => {
      const { path } = file;
      const { task } = await reeve.submit({ kind: COUNT_KIND, key: keyOf(path), args: { root, path } });
      return { file, taskId: task.id };
    }),
  );
  timeline.say(`${submitted.length} admitted, each acknowledged after its commit was synced`);
  let over = 0;
  await Promise.all(
    submitted.map(async ({ taskId }) => {
      await reeve.result(taskId).catch(() => undefined);
      over += 1;
      if (over % Math.ceil(submitted.length / 4) === 0 || over === submitted.length) {
        timeline.say(`${over} of ${submitted.length} counted`);
      }
    }),
  );
  return submitted.map(({ file, taskId }) => ({
    taskId,
    name: file.path,
    status: 'completed',
    counted: { ...file, root },
  }));
}

/** The same key again: the same task. The same key for something else: refused, and where it differs. */
export async function useOneKeyTwice({ reeve, timeline, sources }: Stage): Promise<readonly string[]> {
  const [first, second] = sources.files;
  if (first === undefined || second === undefined) return [];
  const { root } = sources;
  const key = keyOf(first.path);
  timeline.step(`submit ${first.path} again under the same key`);
  const again = await reeve.submit({ kind: COUNT_KIND, key, args: { root, path: first.path } });
  timeline.say(`${again.created ? 'a NEW task' : 'replayed'}: ${shortId(again.task.id)}, ${again.task.status}`);
  timeline.step(`submit ${second.path} under the key of ${first.path}`);
  const problems = again.created ? ['a replay made a new task'] : [];
  try {
    await reeve.submit({ kind: COUNT_KIND, key, args: { root, path: second.path } });
    return [...problems, 'a key was taken for two different contents'];
  } catch (error) {
    if (!isReeveError(error, 'IDEMPOTENCY_CONFLICT')) throw error;
    const { task_id: holder = '', pointers = '' } = error.metadata;
    const places = pointers.replace(/^\["|"\]$/g, '');
    timeline.say(`refused: ${error.reason}, the key belongs to ${shortId(holder)}; it differs at ${places}`);
    if (places !== '/args/path') problems.push(`the conflict names ${pointers}, not /args/path`);
    if (holder !== again.task.id) problems.push('the conflict names another task than the replay');
    return problems;
  }
}

/** A task that would take a minute is stopped at its second step. */
export async function cancelOne({ reeve, timeline }: Stage): Promise<readonly Expectation[]> {
  timeline.step('submit a task of a minute, and cancel it while it runs');
  const { task } = await reeve.submit({ kind: STEPS_KIND, key: 'slow', args: { steps: 300, stepMs: 200 } });
  let asked: Promise<unknown> | undefined;
  for await (const event of reeve.watch(task.id)) {
    if (event.type !== 'reeve.task.checkpoint') timeline.event('slow', event);
    if (stepsDone(event) >= 2) {
      asked ??= reeve.cancel(task.id, { reason: 'the demo has seen enough', waitFor: 'settled' });
    }
  }
  await asked;
  return [{ taskId: task.id, name: 'slow', status: 'cancelled', ownerStopped: 'confirmed' }];
}

/** A worker is killed while it holds a task; the task ends on another one, from its last checkpoint. */
export async function killOneWorker({ reeve, timeline, workers }: Stage): Promise<readonly Expectation[]> {
  timeline.step('submit a task of 20 steps, and kill -9 the worker that holds it');
  const { task } = await reeve.submit({ kind: STEPS_KIND, key: 'handover', args: { steps: 20, stepMs: 50 } });
  let killed: DemoProcess | undefined;
  let killedAtMs = 0;
  for await (const event of reeve.watch(task.id)) {
    const steps = stepsDone(event);
    if (event.type !== 'reeve.task.checkpoint' && (steps === 0 || steps % 5 === 0)) timeline.event('handover', event);
    if (killed === undefined && steps >= 5) {
      const { lease } = await reeve.get(task.id);
      killed = workers.find(({ name }) => name === lease?.workerName);
      if (killed === undefined) throw new Error(`no worker is called ${lease?.workerName ?? '(no lease)'}`);
      killed.kill();
      await killed.ended;
      killedAtMs = timeline.elapsedMs();
      timeline.say(
        `kill -9 ${killed.pid} (${killed.name}); its session may live ${formatDuration(SESSION_TTL_MS)} more`,
      );
    } else if (killed !== undefined && event.type === 'reeve.task.claimed') {
      timeline.say(`claimed again ${formatDuration(timeline.elapsedMs() - killedAtMs)} after the kill`);
    }
  }
  if (killed === undefined) throw new Error('the task ended before its worker could be killed');
  return [{ taskId: task.id, name: 'handover', status: 'completed', attempts: 2, notFinishedBy: killed.name }];
}

function stepsDone(event: TaskEvent): number {
  const { payload } = event;
  if (event.type !== 'task.progress' || typeof payload !== 'object' || payload === null) return 0;
  const message = 'message' in payload && typeof payload.message === 'string' ? payload.message : '';
  return Number(/^step (\d+) /.exec(message)?.[1] ?? 0);
}
