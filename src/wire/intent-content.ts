/**
 * What a keyed intent says, as one hash: the same key with the same content is a replay, with other content a
 * conflict (lifecycle.md section 4, step 2). Covers what the caller stated and nothing that the server added, so that
 * a retry after the lease has ended is still the same content.
 */
import { createHash } from 'node:crypto';
import type { StatedCause } from './cause-codec.js';
import type { StatedGuards, StatedIntent } from './transition-codec.js';

export interface IntentContent {
  readonly intent: StatedIntent;
  readonly guards: StatedGuards;
  readonly cause: StatedCause;
}

/** `sha256:<hex>` over the content with its members in order at every level. */
export function contentHash(content: IntentContent): string {
  const { intent, guards, cause } = content;
  return `sha256:${createHash('sha256').update(ordered({ intent, guards, cause })).digest('hex')}`;
}

function ordered(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(ordered).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${ordered(member)}`);
  return `{${members.join(',')}}`;
}
