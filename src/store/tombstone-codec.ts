/**
 * Stored form of a tombstone: `1` (the format) and a tuple. Kept for ever and once for every task there ever was, so
 * its hashes are written as 43 characters each and not as 71. The task id is the row's own. Format 2 stands where one
 * was lost: it says since when, and nothing reads it as a tombstone.
 */
import { APPLICATION_FIELDS, type ApplicationFieldHashes } from '../kernel/admission/application-hash.js';
import { isTerminal } from '../kernel/status.js';
import type { Tombstone } from '../kernel/tombstone.js';
import { STATUSES, STATUS_CODES } from './code-tables.js';
import { Damage, integerOf, nameOf, parsed, textOf, textOrNull, textsOf, tupleOf } from './decode-guards.js';
import { quoted, quotedList, quotedOrNull, tuple } from './json-writing.js';

const GIVEN_UP = /^2\[\d+\]$/;
const HASH = /^sha256:[0-9a-f]{64}$/;
const HASH_PREFIX = 'sha256:';
/** What is no SHA-256 is kept as it is, behind a mark that no base64url text begins with. */
const AS_IT_IS = '=';

export function encodeTombstone(tombstone: Tombstone): string {
  const { fieldHashes } = tombstone;
  const body = tuple(
    quoted(tombstone.namespace),
    quoted(tombstone.idempotencyKey),
    String(tombstone.generation),
    quoted(tombstone.generationId),
    String(tombstone.revision),
    String(tombstone.lastEvent),
    String(STATUS_CODES[tombstone.status]),
    String(tombstone.finishedAt),
    String(tombstone.purgedAt),
    quoted(shortHash(tombstone.applicationHash)),
    quotedList(APPLICATION_FIELDS.map((field) => shortHash(fieldHashes[field]))),
    quotedOrNull(tombstone.reasonCode),
  );
  return `1${body}`;
}

/** Of a tombstone that could not be read and was given up: nothing is known any more but that the name is taken. */
export function encodeGivenUp(givenUpAt: number): string {
  return `2${tuple(String(givenUpAt))}`;
}

export function isGivenUp(row: string): boolean {
  return GIVEN_UP.test(row);
}

/** Throws `Damage`. */
export function decodeTombstone(taskId: string, row: string): Tombstone {
  if (isGivenUp(row)) throw new Damage('tombstone was lost, and given up');
  if (row.charAt(0) !== '1') throw new Damage('tombstone is of an unknown format');
  const items = tupleOf(parsed(row.slice(1), 'tombstone'), 'tombstone');
  const status = nameOf(STATUSES, items[6], 'status');
  if (!isTerminal(status)) throw new Damage('tombstone of a task that lives');
  return {
    taskId,
    namespace: textOf(items[0], 'namespace'),
    idempotencyKey: textOf(items[1], 'idempotency key'),
    generation: integerOf(items[2], 'generation'),
    generationId: textOf(items[3], 'generation id'),
    revision: integerOf(items[4], 'revision'),
    lastEvent: integerOf(items[5], 'last event'),
    status,
    reasonCode: textOrNull(items[11], 'reason code'),
    applicationHash: fullHash(textOf(items[9], 'application hash')),
    fieldHashes: decodeFieldHashes(items[10]),
    finishedAt: integerOf(items[7], 'finish time'),
    purgedAt: integerOf(items[8], 'purge time'),
  };
}

function decodeFieldHashes(value: unknown): ApplicationFieldHashes {
  const [kind, args, target, contentHash, ref, capabilities] = textsOf(value, 'field hashes').map(fullHash);
  return {
    action_kind: textOf(kind, 'field hash'),
    args: textOf(args, 'field hash'),
    execution_target: textOf(target, 'field hash'),
    library_content_hash: textOf(contentHash, 'field hash'),
    library_ref: textOf(ref, 'field hash'),
    required_capabilities: textOf(capabilities, 'field hash'),
  };
}

function shortHash(hash: string): string {
  if (!HASH.test(hash)) return `${AS_IT_IS}${hash}`;
  return Buffer.from(hash.slice(HASH_PREFIX.length), 'hex').toString('base64url');
}

function fullHash(stored: string): string {
  if (stored.startsWith(AS_IT_IS)) return stored.slice(AS_IT_IS.length);
  return `${HASH_PREFIX}${Buffer.from(stored, 'base64url').toString('hex')}`;
}
