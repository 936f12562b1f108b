/**
 * Stored form of an admission: written once with the task, never again. `1` (the format), a sparse JSON head, and the
 * args behind it exactly as they were hashed. The task id is the row's own.
 */
import type { Admission } from '../kernel/record.js';
import { decodeActor, encodeActor } from './cause-codec.js';
import { SOURCES, SOURCE_CODES, TARGETS, TARGET_CODES } from './code-tables.js';
import {
  Damage,
  integerOf,
  nameOf,
  objectOf,
  textMapOf,
  textOf,
  textOrNull,
  textsOf,
  tupleOf,
} from './decode-guards.js';
import { PayloadTail, instant, isEmptyMap, quoted, quotedList, quotedMap } from './json-writing.js';
import { readStoredText } from './payload-reading.js';
import { decodePolicy, encodePolicy } from './policy-codec.js';

const HASH_PREFIX = 'sha256:';

export function encodeAdmission(admission: Admission): string {
  const { application, actor, scheduleId } = admission;
  const tail = new PayloadTail();
  let head = `1{"n":${quoted(admission.namespace)},"q":${quoted(admission.queue)},"i":${quoted(admission.idempotencyKey)}`;
  head += `,"h":${quoted(shortHash(admission.applicationHash))},"u":${instant(admission.createdAt)}`;
  head += `,"w":[${encodeActor(actor)},${quoted(admission.principal)},${String(SOURCE_CODES[admission.source])}]`;
  head += `,"k":${quoted(application.actionKind)},"a":${tail.add(application.argsJson)}`;
  if (application.executionTarget !== 'host') head += `,"t":${String(TARGET_CODES[application.executionTarget])}`;
  if (application.requiredCapabilities.length > 0) head += `,"c":${quotedList(application.requiredCapabilities)}`;
  if (application.libraryRef !== null) head += `,"l":${quoted(application.libraryRef)}`;
  if (application.libraryContentHash !== null) head += `,"L":${quoted(application.libraryContentHash)}`;
  if (scheduleId !== null) head += `,"s":${quoted(scheduleId)}`;
  if (!isEmptyMap(admission.traceContext)) head += `,"x":${quotedMap(admission.traceContext)}`;
  const policy = encodePolicy(admission.policy);
  if (policy !== '{}') head += `,"p":${policy}`;
  return tail.after(`${head}}`);
}

/** The admission without its args: all that a list shows, however large they are. */
export function withoutArgs(row: string): string {
  const headEnd = row.indexOf('\n');
  return headEnd === -1 ? row : row.slice(0, headEnd);
}

/** Throws `Damage`. Without args they are read as an empty text, and need not be in the row. */
export function decodeAdmission(
  taskId: string,
  row: string,
  args: 'with_args' | 'without_args' = 'with_args',
): Admission {
  if (row.charAt(0) !== '1') throw new Damage('admission is of an unknown format');
  const { head, payloads } = readStoredText(row, 1, 'admission');
  const fields = objectOf(head, 'admission');
  const [actorType, actorId, principal, source] = tupleOf(fields['w'], 'admission origin');
  return {
    taskId,
    namespace: textOf(fields['n'], 'namespace'),
    queue: textOf(fields['q'], 'queue'),
    idempotencyKey: textOf(fields['i'], 'idempotency key'),
    application: {
      actionKind: textOf(fields['k'], 'action kind'),
      argsJson: args === 'with_args' ? payloads.required(fields['a']) : '',
      executionTarget: nameOf(TARGETS, fields['t'] ?? 0, 'execution target'),
      requiredCapabilities: fields['c'] === undefined ? [] : textsOf(fields['c'], 'capabilities'),
      libraryRef: textOrNull(fields['l'], 'library ref'),
      libraryContentHash: textOrNull(fields['L'], 'library content hash'),
    },
    applicationHash: fullHash(textOf(fields['h'], 'application hash')),
    policy: decodePolicy(fields['p'] ?? {}),
    source: nameOf(SOURCES, source, 'source'),
    scheduleId: textOrNull(fields['s'], 'schedule id'),
    actor: decodeActor(actorType, actorId),
    principal: textOf(principal, 'principal'),
    traceContext: textMapOf(fields['x'], 'trace context'),
    createdAt: integerOf(fields['u'], 'creation time'),
  };
}

/** Every hash begins the same; what does not is kept whole, behind a mark that no hexadecimal text begins with. */
function shortHash(hash: string): string {
  return hash.startsWith(HASH_PREFIX) ? hash.slice(HASH_PREFIX.length) : `=${hash}`;
}

function fullHash(stored: string): string {
  return stored.startsWith('=') ? stored.slice(1) : `${HASH_PREFIX}${stored}`;
}
