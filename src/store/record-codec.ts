/**
 * Stored form of a task record, without its admission: `1` (the format), one letter for the status (so that a list can
 * be filtered without parsing), and a JSON object of what is not at its default. Times are distances from the time of
 * the last change, because small numbers are short and cheap to write. Written on every change of a task: keep it lean.
 */
import type { TaskState } from '../kernel/event.js';
import type { Admission, Cancellation, EndedLease, Lease, TaskRecord } from '../kernel/record.js';
import type { TaskStatus } from '../kernel/status.js';
import { decodeActor, decodeEnding, decodeReason, encodeActor, encodeEnding, encodeReason } from './cause-codec.js';
import { AEP_CODES, AEP_NAMES, STATUSES, STATUS_CODES } from './code-tables.js';
import {
  Damage,
  flagOf,
  integerOf,
  integerOr,
  integerOrNull,
  nameOf,
  numberOrNull as optionalNumber,
  objectOf,
  textOf,
  textOrNull,
  tupleOf,
} from './decode-guards.js';
import { instant, numberOrNull, quoted, tuple } from './json-writing.js';
import { readStoredText } from './payload-reading.js';
import { decodePolicy, encodePolicy } from './policy-codec.js';

const STATUS_LETTERS = 'abcdefghij';
const HEAD_START = 2;

/** What a record has in common with its admission is not written. */
type Origin = Pick<Admission, 'createdAt' | 'policy'>;

/** Of a record that stands by itself, inside an event: everything is written but the defaults of the format. */
const NO_ORIGIN: Origin = { createdAt: 0, policy: decodePolicy({}) };

export function encodeRecord(record: TaskRecord): string {
  return encodeFields(record, record.admission);
}

export function encodeState(state: TaskState): string {
  return encodeFields(state, NO_ORIGIN);
}

function encodeFields(record: TaskState, admission: Origin): string {
  const { updatedAt, lease } = record;
  let text = `1${STATUS_LETTERS.charAt(STATUS_CODES[record.status])}{"n":${String(record.lastEvent)}`;
  text += `,"r":${String(record.revision)},"u":${instant(updatedAt)},"i":${quoted(record.generationId)}`;
  if (record.generation !== 1) text += `,"g":${String(record.generation)}`;
  if (record.generationStartedAt !== admission.createdAt)
    text += `,"b":${String(updatedAt - record.generationStartedAt)}`;
  if (record.everClaimed) text += ',"c":1';
  if (record.aep !== 'submitted') text += `,"a":${String(AEP_CODES[record.aep])}`;
  if (record.attempt !== 0) text += `,"t":${String(record.attempt)}`;
  if (record.epoch !== 0) text += `,"e":${String(record.epoch)}`;
  if (record.handBacks !== 0) text += `,"h":${String(record.handBacks)}`;
  if (lease !== null) text += `,"l":${encodeLease(lease, updatedAt)}`;
  if (record.endedLease !== null) text += `,"d":${encodeEndedLease(record.endedLease)}`;
  if (record.notBeforeAt !== null) text += `,"f":${String(record.notBeforeAt)}`;
  if (record.queuedAt === null) text += ',"q":null';
  else if (record.queuedAt !== admission.createdAt) text += `,"q":${String(updatedAt - record.queuedAt)}`;
  if (record.retryAt !== null) text += `,"y":${String(record.retryAt - updatedAt)}`;
  if (record.cancellation !== null) text += `,"x":${encodeCancellation(record.cancellation)}`;
  if (!record.ownerStopped) text += ',"o":0';
  if (record.progress !== null) text += `,"v":${String(record.progress)}`;
  if (record.message !== null) text += `,"m":${quoted(record.message)}`;
  if (record.blockedReason !== null) text += `,"k":${quoted(record.blockedReason)}`;
  if (record.ending !== null) text += `,"z":${encodeEnding(record.ending)}`;
  if (record.resultEvent !== null) text += `,"w":${String(record.resultEvent)}`;
  if (record.checkpointEvent !== null) text += `,"j":${String(record.checkpointEvent)}`;
  if (record.inputEvent !== null) text += `,"I":${String(record.inputEvent)}`;
  if (record.outputTruncated) text += ',"O":1';
  if (record.hasChildren) text += ',"C":1';
  if (record.hasWaiters) text += ',"W":1';
  if (record.openDependencies) text += ',"D":1';
  if (record.reason !== null) text += `,"R":${encodeReason(record.reason)}`;
  if (record.startedAt !== null) text += `,"s":${String(updatedAt - record.startedAt)}`;
  if (record.finishedAt !== null) text += `,"F":${String(updatedAt - record.finishedAt)}`;
  if (record.policy !== admission.policy) {
    const policy = encodePolicy(record.policy);
    if (policy !== encodePolicy(admission.policy)) text += `,"p":${policy}`;
  }
  return `${text}}`;
}

/** The status of an encoded record, without parsing it; undefined when it has none. */
export function statusOfEncoded(row: string): TaskStatus | undefined {
  return STATUSES[STATUS_LETTERS.indexOf(row.charAt(1))];
}

/** Throws `Damage`. */
export function decodeRecord(row: string, admission: Admission): TaskRecord {
  return { admission, ...decodeFields(row, admission) };
}

/** Throws `Damage`. */
export function decodeState(row: string): TaskState {
  return decodeFields(row, NO_ORIGIN);
}

function decodeFields(row: string, admission: Origin): TaskState {
  if (row.charAt(0) !== '1') throw new Damage('record is of an unknown format');
  const status = statusOfEncoded(row);
  if (status === undefined) throw new Damage('record has no status');
  const fields = objectOf(readStoredText(row, HEAD_START, 'record').head, 'record');
  const updatedAt = integerOf(fields['u'], 'time of change');
  const before = (value: unknown, what: string): number | null =>
    value === undefined || value === null ? null : updatedAt - integerOf(value, what);
  return {
    policy: fields['p'] === undefined ? admission.policy : decodePolicy(fields['p']),
    generation: integerOr(fields['g'], 1, 'generation'),
    generationId: textOf(fields['i'], 'generation id'),
    generationStartedAt: before(fields['b'], 'start of the generation') ?? admission.createdAt,
    revision: integerOf(fields['r'], 'revision'),
    lastEvent: integerOf(fields['n'], 'last event'),
    status,
    everClaimed: flagOf(fields['c'], false, 'ever claimed'),
    aep: nameOf(AEP_NAMES, fields['a'] ?? 0, 'AEP state'),
    attempt: integerOr(fields['t'], 0, 'attempt'),
    epoch: integerOr(fields['e'], 0, 'epoch'),
    handBacks: integerOr(fields['h'], 0, 'hand-backs'),
    lease: fields['l'] === undefined ? null : decodeLease(fields['l'], updatedAt),
    endedLease: fields['d'] === undefined ? null : decodeEndedLease(fields['d']),
    notBeforeAt: integerOrNull(fields['f'], 'not-before'),
    queuedAt: fields['q'] === undefined ? admission.createdAt : before(fields['q'], 'queue time'),
    retryAt: fields['y'] === undefined ? null : updatedAt + integerOf(fields['y'], 'retry time'),
    cancellation: fields['x'] === undefined ? null : decodeCancellation(fields['x']),
    ownerStopped: flagOf(fields['o'], true, 'owner stopped'),
    progress: optionalNumber(fields['v'], 'progress'),
    message: textOrNull(fields['m'], 'message'),
    blockedReason: textOrNull(fields['k'], 'blocked reason'),
    ending: decodeEnding(fields['z']),
    resultEvent: integerOrNull(fields['w'], 'result event'),
    checkpointEvent: integerOrNull(fields['j'], 'checkpoint event'),
    inputEvent: integerOrNull(fields['I'], 'input event'),
    outputTruncated: flagOf(fields['O'], false, 'output truncated'),
    hasChildren: flagOf(fields['C'], false, 'has children'),
    hasWaiters: flagOf(fields['W'], false, 'has waiters'),
    openDependencies: flagOf(fields['D'], false, 'open dependencies'),
    reason: decodeReason(fields['R']),
    startedAt: before(fields['s'], 'start'),
    finishedAt: before(fields['F'], 'end'),
    updatedAt,
  };
}

/** The claim's times count from the claim. */
function encodeLease(lease: Lease, updatedAt: number): string {
  const { claimedAt, acceptedAt } = lease;
  const head = `[${quoted(lease.sessionId)},${quoted(lease.worker)},${String(lease.sessionTtlMs)},${String(lease.epoch)}`;
  const times = `${String(updatedAt - claimedAt)},${String(lease.acceptBy - claimedAt)}`;
  const silent = acceptedAt === null && lease.lastWordAt === claimedAt && lease.attemptState === 'submitted';
  if (silent && lease.eventSeq === 0 && lease.outputs === 0) return `${head},${times}]`;
  const word = `${numberOrNull(acceptedAt === null ? null : acceptedAt - claimedAt)},${String(lease.lastWordAt - claimedAt)}`;
  const state = `${String(AEP_CODES[lease.attemptState])},${String(lease.eventSeq)}`;
  const outputs =
    lease.outputs === 0
      ? ''
      : `,${String(lease.outputs)},${String(lease.outputBytes)},${lease.outputTruncated ? '1' : '0'}`;
  return `${head},${times},${word},${state}${outputs}]`;
}

function decodeLease(value: unknown, updatedAt: number): Lease {
  const [sessionId, worker, ttl, epoch, claimed, acceptBy, accepted, lastWord, state, seq, outputs, bytes, truncated] =
    tupleOf(value, 'lease');
  const claimedAt = updatedAt - integerOf(claimed, 'claim time');
  const acceptedAfter = integerOrNull(accepted, 'acceptance');
  return {
    sessionId: textOf(sessionId, 'lease session'),
    worker: textOf(worker, 'lease worker'),
    sessionTtlMs: integerOf(ttl, 'session TTL'),
    epoch: integerOf(epoch, 'lease epoch'),
    claimedAt,
    acceptBy: claimedAt + integerOf(acceptBy, 'accept time'),
    acceptedAt: acceptedAfter === null ? null : claimedAt + acceptedAfter,
    lastWordAt: claimedAt + integerOr(lastWord, 0, 'last word'),
    attemptState: nameOf(AEP_NAMES, state ?? 0, 'attempt state'),
    eventSeq: integerOr(seq, 0, 'worker event number'),
    outputs: integerOr(outputs, 0, 'outputs'),
    outputBytes: integerOr(bytes, 0, 'output bytes'),
    outputTruncated: flagOf(truncated, false, 'output truncated'),
  };
}

function encodeEndedLease(ended: EndedLease): string {
  return `[${String(ended.epoch)},${quoted(ended.sessionId)},${String(ended.eventSeq)}]`;
}

function decodeEndedLease(value: unknown): EndedLease {
  const [epoch, sessionId, eventSeq] = tupleOf(value, 'ended lease');
  return {
    epoch: integerOf(epoch, 'ended epoch'),
    sessionId: textOf(sessionId, 'ended session'),
    eventSeq: integerOf(eventSeq, 'ended event number'),
  };
}

function encodeCancellation(cancellation: Cancellation): string {
  return tuple(
    String(cancellation.requestedAt),
    encodeActor(cancellation.requestedBy),
    quoted(cancellation.principal),
    String(cancellation.eventNumber),
    String(cancellation.revision),
    encodeReason(cancellation.reason),
    numberOrNull(cancellation.graceEndsAt),
    numberOrNull(cancellation.deliveredAt),
    numberOrNull(cancellation.acknowledgedAt),
  );
}

function decodeCancellation(value: unknown): Cancellation {
  const [at, actorType, actorId, principal, number, revision, reason, grace, delivered, acknowledged] = tupleOf(
    value,
    'cancellation',
  );
  return {
    requestedAt: integerOf(at, 'request time'),
    requestedBy: decodeActor(actorType, actorId),
    principal: textOf(principal, 'requesting principal'),
    reason: decodeReason(reason),
    eventNumber: integerOf(number, 'request event'),
    revision: integerOf(revision, 'request revision'),
    graceEndsAt: integerOrNull(grace, 'grace'),
    deliveredAt: integerOrNull(delivered, 'delivery'),
    acknowledgedAt: integerOrNull(acknowledged, 'acknowledgement'),
  };
}
