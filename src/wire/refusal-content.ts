/**
 * What of a refusal is told to a caller: its message and metadata, bounded, and how long to wait.
 * The same for a status and for a Refusal message. Metadata travels in HTTP/2 trailers, which some clients hold to
 * 8 KiB in all, so it is cut here; an INTERNAL refusal tells its request id and nothing else.
 */
import type { Refusal } from '../kernel/refusal.js';
import { ERROR_TABLE } from './error-table.js';

/** Key under which a refusal inside the service carries its own delay; told as RetryInfo, never as metadata. */
const RETRY_KEY = 'retry_after_ms';
const MAX_VALUE_CHARACTERS = 1_024;
const MAX_MESSAGE_CHARACTERS = 512;
/** The values that are JSON lists: whole elements are dropped from their ends. */
const LISTS = ['pointers', 'violations'] as const;
const MAX_LIST_CHARACTERS = 2_048;

export interface RefusalContent {
  readonly message: string;
  readonly metadata: Record<string, string>;
  readonly retryAfterMs: number | null;
}

export function refusalContent(refusal: Refusal): RefusalContent {
  const rule = ERROR_TABLE[refusal.reason];
  if (refusal.reason === 'INTERNAL') {
    const requestId = refusal.metadata['request_id'];
    const metadata: Record<string, string> = requestId === undefined ? {} : { request_id: requestId };
    return { message: 'an internal error; the request id finds it in the log', metadata, retryAfterMs: null };
  }
  const metadata: Record<string, string> = {};
  for (const [key, value] of Object.entries(refusal.metadata)) {
    if (key !== RETRY_KEY) metadata[key] = cut(value, MAX_VALUE_CHARACTERS);
  }
  for (const name of LISTS) {
    const list = refusal.metadata[name];
    if (list !== undefined) boundList(metadata, name, list);
  }
  const own = Number(refusal.metadata[RETRY_KEY] ?? Number.NaN);
  const retryAfterMs = rule.retryAfterMs === undefined ? null : Number.isFinite(own) ? own : rule.retryAfterMs;
  return { message: cut(refusal.message, MAX_MESSAGE_CHARACTERS), metadata, retryAfterMs };
}

function boundList(metadata: Record<string, string>, name: string, json: string): void {
  const elements: unknown = JSON.parse(json);
  if (!Array.isArray(elements)) return;
  const kept: unknown[] = [];
  let size = 2;
  for (const element of elements) {
    size += JSON.stringify(element).length + 1;
    if (size > MAX_LIST_CHARACTERS) break;
    kept.push(element);
  }
  metadata[name] = JSON.stringify(kept);
  if (kept.length < elements.length) metadata['truncated'] = 'true';
  else if (metadata['truncated'] === 'false') delete metadata['truncated'];
}

/** At most so many UTF-16 units, never half of a pair: trailers are percent-encoded, which has no form for one. */
function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}
