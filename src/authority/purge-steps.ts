/**
 * Purging many: a few tasks at a time, because each is read with its args for the hashes that its tombstone keeps, and
 * what serves callers goes on in between.
 */
import type { Authority } from './authority.js';
import type { PurgeAnswer, PurgeRequest } from './purge-work.js';

export const TASKS_PER_PURGE_STEP = 32;

/** Tells of each what became of it, in order; ends early once `goesOn` says no. */
export async function purgeTasks<Request extends PurgeRequest>(
  authority: Authority,
  requests: readonly Request[],
  tell: (request: Request, answer: PurgeAnswer) => void,
  goesOn: () => boolean = () => true,
): Promise<void> {
  for (let from = 0; from < requests.length && goesOn(); from += TASKS_PER_PURGE_STEP) {
    const step = requests.slice(from, from + TASKS_PER_PURGE_STEP);
    const answers = await Promise.all(step.map(({ taskId, version }) => authority.upkeep.purge({ taskId, version })));
    for (const [index, request] of step.entries()) {
      const answer = answers[index];
      if (answer !== undefined) tell(request, answer);
    }
  }
}
