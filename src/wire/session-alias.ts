/**
 * The public name of a session: tells one from another and proves nothing, because it cannot be turned back into the
 * id that names the session when attaching (worker_service.proto, `session_alias`).
 */
import { createHash } from 'node:crypto';

const ALIAS_BYTES = 9;
const MAX_CACHED_ALIASES = 10_000;
const aliases = new Map<string, string>();

export function sessionAlias(sessionId: string): string {
  let alias = aliases.get(sessionId);
  if (alias === undefined) {
    if (aliases.size >= MAX_CACHED_ALIASES) aliases.clear();
    alias = createHash('sha256').update(`alias\n${sessionId}`).digest().toString('base64url', 0, ALIAS_BYTES);
    aliases.set(sessionId, alias);
  }
  return alias;
}
