/**
 * How sessions end, and how long their rows are kept after it: for operators, who see who is gone and why. Nothing else
 * rests on the row of a session that is gone: no row and a gone one are the same to whoever would act for it.
 */
import type { SessionEnd, SessionEndCause } from '../store/commit-plan.js';

/** Long enough to find in the morning what went in the night. */
export const GONE_SESSION_KEPT_MS = 24 * 3_600_000;
/**
 * A session of one claim that is over with it says nothing that the history of its task does not; there may be thousands
 * a second.
 */
const SETTLED_SESSION_KEPT_MS = 0;

/** An end at `now` (epoch ms). */
export function endAt(now: number, cause: SessionEndCause): SessionEnd {
  const keptMs = cause === 'claim_ended' ? SETTLED_SESSION_KEPT_MS : GONE_SESSION_KEPT_MS;
  return { at: now, cause, forgetAt: now + keptMs };
}
