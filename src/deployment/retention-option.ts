/**
 * How the default retention is written: `never`, one span for every end, or spans by status, in flags as
 * `30d,failed=90d`, in reeve.yaml also as a mapping (`all: 30d`, `failed: 90d`).
 */
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import { KEEP_FOR_EVER, type RetentionDefaults } from '../kernel/retention.js';
import { TASK_STATUSES, type TerminalStatus, isTerminal } from '../kernel/status.js';
import { ConfigError, readList, readSpan } from './option-values.js';

const NEVER = 'never';
const ALL = 'all';
const TERMINAL: readonly TerminalStatus[] = TASK_STATUSES.filter(isTerminal);

export function readRetention(written: unknown): RetentionDefaults {
  const parts = typeof written === 'object' && written !== null && !Array.isArray(written) ? written : null;
  const named = parts === null ? readList(written).map(partOf) : Object.entries(parts);
  let retention = KEEP_FOR_EVER;
  // What is said of all is the ground for what is said of one, wherever it stands.
  for (const [name, span] of named.toSorted(([left], [right]) => Number(right === ALL) - Number(left === ALL))) {
    const keptMs = span === NEVER ? null : readSpan(0, MAX_DURATION_MS)(span);
    for (const status of statusesOf(name)) retention = { ...retention, [status]: keptMs };
  }
  return retention;
}

function partOf(part: string): [string, unknown] {
  const at = part.indexOf('=');
  return at === -1 ? [ALL, part] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
}

function statusesOf(name: string): readonly TerminalStatus[] {
  if (name === ALL) return TERMINAL;
  const status = TERMINAL.find((known) => known === name);
  if (status === undefined)
    throw new ConfigError(`${name} is no end of a task; there are ${TERMINAL.join(', ')}, ${ALL}`);
  return [status];
}
