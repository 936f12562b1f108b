/**
 * Stored form of what an event says (its `data`), per type: the items that follow the event's own in its tuple.
 * Positions are fixed for ever; a field added later goes to the end and reads as its default where it is absent.
 * Times are distances from the event's own, which are short.
 */
import type { EventBody, EventType, OutputData, TerminalData } from '../kernel/event.js';
import type { PolicyField } from '../kernel/policy-update.js';
import { decodeEnding, encodeEnding } from './cause-codec.js';
import {
  FOLLOWERS,
  FOLLOWER_CODES,
  POLICY_FIELDS,
  REPAIRS,
  REPAIR_CODES,
  RETRY_CAUSES,
  RETRY_CAUSE_CODES,
} from './code-tables.js';
import {
  Damage,
  flagOf,
  integerOf,
  integerOr,
  integerOrNull,
  nameOf,
  numberOrNull as optionalNumber,
  textOf,
  textOrNull,
  textsOf,
} from './decode-guards.js';
import { REDACTED_JSON } from './history-row.js';
import { type PayloadTail, numberOrNull, quoted, quotedList, quotedOrNull } from './json-writing.js';
import type { PayloadReader } from './payload-reading.js';
import { decodePolicy, encodePolicy } from './policy-codec.js';
import { decodeState, encodeState } from './record-codec.js';

/** Begins with a comma unless it is empty. */
export function encodeBody(body: EventBody, at: number, tail: PayloadTail): string {
  switch (body.type) {
    case 'task.submitted':
      return `,${quoted(body.data.generationId)},${distance(body.data.notBeforeAt, at)}`;
    case 'reeve.task.generation_started':
      return `,${quoted(body.data.generationId)},${tail.add(body.data.inputJson)}`;
    case 'reeve.task.claimed': {
      const { sessionId, worker, sessionTtlMs, acceptBy } = body.data;
      return `,${quoted(sessionId)},${quoted(worker)},${String(sessionTtlMs)},${String(acceptBy - at)}`;
    }
    case 'reeve.task.followed':
      return `,${String(FOLLOWER_CODES[body.data.by])}`;
    case 'reeve.task.held':
      return `,${String(body.data.unsatisfied)}`;
    case 'task.accepted':
    case 'task.started':
    case 'reeve.task.dependencies_met':
    case 'reeve.task.ready':
    case 'reeve.task.cancel_delivered':
    case 'reeve.task.cancel_acknowledged':
      return '';
    case 'task.progress':
      return `,${numberOrNull(body.data.progress)},${quotedOrNull(body.data.message)}`;
    case 'task.output': {
      const { outputJson, binaryBase64, contentType, truncated } = body.data;
      return `,${tail.add(outputJson)},${tail.add(binaryBase64)},${quotedOrNull(contentType)},${flag(truncated)}`;
    }
    case 'task.blocked':
      return `,${quoted(body.data.reason)}`;
    case 'reeve.task.checkpoint':
      return `,${tail.add(body.data.checkpointJson)}`;
    case 'reeve.task.retry_scheduled': {
      const { retryAt, cause, attemptGivenBack, ending } = body.data;
      return `,${String(retryAt - at)},${String(RETRY_CAUSE_CODES[cause])},${flag(attemptGivenBack)},${encodeEnding(ending)}`;
    }
    case 'reeve.task.requeued':
      return `,${flag(body.data.keepsPlace)}`;
    case 'reeve.task.suspended':
      return `,${flag(body.data.byHolder)},${flag(body.data.wasRunning)}`;
    case 'reeve.task.resumed':
      return `,${tail.add(body.data.inputJson)}`;
    case 'reeve.task.policy_updated': {
      const { fields, policy, notBeforeAt } = body.data;
      return `,${quotedList(fields)},${encodePolicy(policy)},${distance(notBeforeAt, at)}`;
    }
    case 'task.cancel.requested':
    case 'reeve.task.cancel_hastened':
      return `,${distance(body.data.graceEndsAt, at)}`;
    case 'task.completed':
    case 'task.failed':
    case 'task.timed_out':
    case 'task.cancelled':
    case 'reeve.task.skipped': {
      const { resultJson, ending, ownerStopped } = body.data;
      return `,${tail.add(resultJson)},${flag(ownerStopped)}${ending === null ? '' : `,${encodeEnding(ending)}`}`;
    }
    case 'reeve.task.repaired': {
      const { repair, mended, redacted, accepted } = body.data;
      const state = accepted === null ? '' : `,${quoted(encodeState(accepted))}`;
      return `,${String(REPAIR_CODES[repair])},${quotedList(mended)},${numberOrNull(redacted)}${state}`;
    }
  }
}

/** `items` are those behind the event's own. Throws `Damage`. */
export function decodeBody(type: EventType, items: readonly unknown[], at: number, payloads: PayloadReader): EventBody {
  const [first, second, third, fourth] = items;
  switch (type) {
    case 'task.submitted':
      return {
        type,
        data: { generationId: textOf(first, 'generation id'), notBeforeAt: timeOf(second, at, 'not-before') },
      };
    case 'reeve.task.generation_started':
      return { type, data: { generationId: textOf(first, 'generation id'), inputJson: payloads.next(second) } };
    case 'reeve.task.claimed':
      return {
        type,
        data: {
          sessionId: textOf(first, 'session'),
          worker: textOf(second, 'worker'),
          sessionTtlMs: integerOf(third, 'session TTL'),
          acceptBy: at + integerOf(fourth, 'accept time'),
        },
      };
    case 'reeve.task.followed':
      return { type, data: { by: nameOf(FOLLOWERS, first, 'follower') } };
    case 'reeve.task.held':
      return { type, data: { unsatisfied: integerOf(first, 'unsatisfied') } };
    case 'task.accepted':
    case 'task.started':
    case 'reeve.task.dependencies_met':
    case 'reeve.task.ready':
    case 'reeve.task.cancel_delivered':
    case 'reeve.task.cancel_acknowledged':
      return { type, data: {} };
    case 'task.progress':
      return { type, data: { progress: optionalNumber(first, 'progress'), message: textOrNull(second, 'message') } };
    case 'task.output':
      return { type, data: decodeOutput(items, payloads) };
    case 'task.blocked':
      return { type, data: { reason: textOf(first, 'blocked reason') } };
    case 'reeve.task.checkpoint':
      return { type, data: { checkpointJson: payloads.required(first) } };
    case 'reeve.task.retry_scheduled':
      return {
        type,
        data: {
          retryAt: at + integerOf(first, 'retry time'),
          cause: nameOf(RETRY_CAUSES, second, 'retry cause'),
          attemptGivenBack: flagOf(third, false, 'attempt given back'),
          ending: decodeEnding(fourth),
        },
      };
    case 'reeve.task.requeued':
      return { type, data: { keepsPlace: flagOf(first, false, 'keeps its place') } };
    case 'reeve.task.suspended':
      return {
        type,
        data: { byHolder: flagOf(first, false, 'by holder'), wasRunning: flagOf(second, false, 'was running') },
      };
    case 'reeve.task.resumed':
      return { type, data: { inputJson: payloads.next(first) } };
    case 'reeve.task.policy_updated':
      return {
        type,
        data: {
          fields: textsOf(first, 'changed fields').map(policyFieldOf),
          policy: decodePolicy(second),
          notBeforeAt: timeOf(third, at, 'not-before'),
        },
      };
    case 'task.cancel.requested':
      return { type, data: { graceEndsAt: timeOf(first, at, 'grace') } };
    case 'reeve.task.cancel_hastened':
      return { type, data: { graceEndsAt: at + integerOf(first, 'grace') } };
    case 'task.completed':
    case 'task.failed':
    case 'task.timed_out':
    case 'task.cancelled':
    case 'reeve.task.skipped':
      return { type, data: decodeTerminal(first, second, third, payloads) };
    case 'reeve.task.repaired':
      return {
        type,
        data: {
          repair: nameOf(REPAIRS, first, 'repair'),
          mended: textsOf(second, 'mended'),
          redacted: integerOrNull(third, 'redacted event'),
          accepted: fourth === undefined ? null : decodeState(textOf(fourth, 'accepted record')),
        },
      };
  }
}

/** Of an output that was taken out its size stays, because the limits of its attempt count it. */
function decodeOutput(items: readonly unknown[], payloads: PayloadReader): OutputData {
  const [json, binary, contentType, truncated] = items;
  const { isTaken } = payloads;
  const data: OutputData = {
    outputJson: payloads.next(json),
    binaryBase64: payloads.next(binary),
    contentType: textOrNull(contentType, 'content type'),
    truncated: flagOf(truncated, false, 'truncated'),
  };
  if (!isTaken || (data.outputJson === null && data.binaryBase64 === null)) return data;
  const redactedBytes = integerOr(json, 0, 'output length') + integerOr(binary, 0, 'output length');
  return { ...data, outputJson: REDACTED_JSON, binaryBase64: null, redactedBytes };
}

function decodeTerminal(result: unknown, stopped: unknown, ending: unknown, payloads: PayloadReader): TerminalData {
  return {
    resultJson: payloads.next(result),
    ending: decodeEnding(ending),
    ownerStopped: flagOf(stopped, true, 'owner stopped'),
  };
}

function distance(time: number | null, at: number): string {
  return time === null ? 'null' : String(time - at);
}

function timeOf(value: unknown, at: number, what: string): number | null {
  const after = integerOrNull(value, what);
  return after === null ? null : at + after;
}

function policyFieldOf(name: string): PolicyField {
  const field = POLICY_FIELDS.find((known) => known === name);
  if (field === undefined) throw new Damage('unknown policy field');
  return field;
}

function flag(value: boolean): string {
  return value ? '1' : '0';
}
