/**
 * One committed event as one line: when, which, and what it says. For `events`, and for `watch` when nobody looks on.
 */
import type { Event } from '../../gen/reeve/v1/event_pb.js';
import { TaskStatus, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { memberText } from '../member-text.js';
import { enumWord } from '../options/argument-parsers.js';
import { compactJson } from './message-json.js';
import { clockTime } from './moment.js';
import { clipText, plainText } from './plain-text.js';
import { percentage } from './progress-bar.js';
import { type Style, tintOfStatus } from './style.js';

const TYPE_WIDTH = 26;
const MOVE_WIDTH = 22;
/** Longer content is cut; `--json` has it whole. */
const CONTENT_WIDTH = 160;

/** What an event's payload may hold, by the names of AEP. Nothing is relied on. */
export interface Payload {
  readonly [member: string]: unknown;
}

export function eventPayload(event: Event): Payload {
  try {
    const value: unknown = JSON.parse(event.payloadJson === '' ? '{}' : event.payloadJson);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

export function eventLine(event: Event, style: Style): string {
  const number = String(event.eventNumber).padStart(4);
  const type = plainText(event.type).padEnd(TYPE_WIDTH);
  const move = moveOf(event);
  const painted = move === '' ? ' '.repeat(MOVE_WIDTH) : style(tintOfStatus(event.toStatus), move.padEnd(MOVE_WIDTH));
  const text = eventContent(event);
  return `${number}  ${style('dim', clockTime(event.time))}  ${type}  ${painted}  ${text}`.trimEnd();
}

/** `queued → running`; empty for what is no fact or moves nothing. */
function moveOf(event: Event): string {
  if (event.toStatus === TaskStatus.UNSPECIFIED) return '';
  const to = enumWord(TaskStatusSchema, event.toStatus);
  if (event.fromStatus === event.toStatus) return to;
  return event.fromStatus === TaskStatus.UNSPECIFIED ? to : `${enumWord(TaskStatusSchema, event.fromStatus)} → ${to}`;
}

/** What the event says, in words; empty when its type says it all. */
export function eventContent(event: Event): string {
  const payload = eventPayload(event);
  const parts: string[] = [];
  if (typeof payload['progress'] === 'number') parts.push(percentage(payload['progress']).trim());
  if (typeof payload['message'] === 'string') parts.push(plainText(payload['message']));
  if (event.binary !== undefined) parts.push(`${event.binary.data.length} bytes of ${event.binary.contentType}`);
  for (const name of ['output', 'checkpoint', 'result']) {
    if (payload[name] !== undefined) parts.push(compactJson(memberText(event.payloadJson, name) ?? ''));
  }
  if (payload['error'] !== undefined) parts.push(errorText(payload['error']));
  if (event.type === 'task.blocked' && typeof payload['reason'] === 'string') parts.push(plainText(payload['reason']));
  if (event.type === 'reeve.task.claimed' && typeof payload['worker'] === 'string') {
    parts.push(`by ${plainText(payload['worker'])}`);
  }
  if (event.reason !== undefined && event.reason.code !== '') parts.push(reasonText(event.reason));
  if (event.inferred) parts.push('(inferred)');
  return clipText(parts.join('  '), CONTENT_WIDTH);
}

function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'error';
  const message = 'message' in error && typeof error.message === 'string' ? error.message : '';
  return plainText(message === '' ? code : `${code}: ${message}`);
}

function reasonText(reason: { readonly code: string; readonly summary: string }): string {
  return plainText(reason.summary === '' ? reason.code : `${reason.code}: ${reason.summary}`);
}
