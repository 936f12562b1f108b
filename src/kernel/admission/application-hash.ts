/**
 * The hash of an application, and the hashes of its six fields.
 *
 * Owns the exact text that is hashed (docs/application-hash.md): changing a byte of it makes every stored key conflict
 * with its own payload, so it never changes. It trusts that the application is canonical and checks nothing.
 */

import { createHash } from 'node:crypto';

import type { Application } from './application.js';
import { canonicalString } from './canonical-json.js';

/** In canonical order. */
export const APPLICATION_FIELDS = [
  'action_kind',
  'args',
  'execution_target',
  'library_content_hash',
  'library_ref',
  'required_capabilities',
] as const;
export type ApplicationField = (typeof APPLICATION_FIELDS)[number];

/** `sha256:` + lower-case hexadecimal of each field's canonical JSON: what a tombstone keeps of an application. */
export type ApplicationFieldHashes = Readonly<Record<ApplicationField, string>>;

/** `sha256:` + lower-case hexadecimal over RFC 8785 canonical JSON of exactly the six fields (lifecycle.md section 5). */
export function applicationHash(application: Application): string {
  const text =
    `{"action_kind":${fieldText(application, 'action_kind')},"args":${application.argsJson}` +
    `,"execution_target":${fieldText(application, 'execution_target')}` +
    `,"library_content_hash":${fieldText(application, 'library_content_hash')}` +
    `,"library_ref":${fieldText(application, 'library_ref')}` +
    `,"required_capabilities":${fieldText(application, 'required_capabilities')}}`;
  return sha256(text);
}

export function applicationFieldHashes(application: Application): ApplicationFieldHashes {
  const hashOf = (field: ApplicationField): string => sha256(fieldText(application, field));
  return {
    action_kind: hashOf('action_kind'),
    args: hashOf('args'),
    execution_target: hashOf('execution_target'),
    library_content_hash: hashOf('library_content_hash'),
    library_ref: hashOf('library_ref'),
    required_capabilities: hashOf('required_capabilities'),
  };
}

/** Canonical JSON of one field. */
function fieldText(application: Application, field: ApplicationField): string {
  switch (field) {
    case 'action_kind':
      return canonicalString(application.actionKind);
    case 'args':
      return application.argsJson;
    case 'execution_target':
      return canonicalString(application.executionTarget);
    case 'library_content_hash':
      return textOrNull(application.libraryContentHash);
    case 'library_ref':
      return textOrNull(application.libraryRef);
    case 'required_capabilities':
      return `[${application.requiredCapabilities.map(canonicalString).join(',')}]`;
  }
}

function textOrNull(text: string | null): string {
  return text === null ? 'null' : canonicalString(text);
}

function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text, 'utf8').digest('hex')}`;
}
