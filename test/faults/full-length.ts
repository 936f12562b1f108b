// How long the scenarios are: the tests run them in a short form, `npm run chaos:stream` as they are stated.

export const fullLength = process.env['REEVE_CHAOS_STREAM'] === 'full';

/** What recovery may take beyond the TTL. */
export const RECOVERY_SLACK_MS = 2_000;

/** For the few scenarios that are about time passing, and not about something that can be waited for. */
export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
