/**
 * How a session ended, as the text that its row keeps: `[at, cause, drained, held, [task id, …]]`. Told to people and
 * never decided on: what cannot be read is left out.
 */
import { END_CAUSES, END_CAUSE_CODES } from '../code-tables.js';
import type { EndedSession } from '../commit-plan.js';

export function encodeEnd({ at, cause, drained, held, taskIds }: EndedSession): string {
  return JSON.stringify([at, END_CAUSE_CODES[cause], drained ? 1 : 0, held, taskIds]);
}

/** Null for a session that lives, that went before this was kept, or whose text is damaged. */
export function decodeEnd(forgetAt: number | null, text: string | null): EndedSession | null {
  if (forgetAt === null || text === null) return null;
  const [at, code, drained, held, taskIds] = listOf(text);
  const cause = typeof code === 'number' ? END_CAUSES[code] : undefined;
  if (typeof at !== 'number' || cause === undefined || typeof held !== 'number' || !Array.isArray(taskIds)) return null;
  const named = taskIds.filter((taskId): taskId is string => typeof taskId === 'string');
  return { at, cause, forgetAt, drained: drained === 1, held, taskIds: named };
}

function listOf(text: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}
