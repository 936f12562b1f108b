/**
 * The content of an event as JSON text, in AEP's field names (event.proto, `payload_json`; docs/reference/events.md).
 * Every payload carries `task_id`; those of the AEP projection also `state`, the AEP state after the event. Values that
 * are JSON already (results, outputs, checkpoints, inputs) are put in as they were written, never parsed again.
 */
import type { TaskEvent, TerminalData } from '../kernel/event.js';
import type { Admission, Ending, TaskError } from '../kernel/record.js';
import { policyChangeJson } from './policy-payload.js';
import { sessionAlias } from './session-alias.js';

/** The members of one JSON object, in the order they were added; null and absent values are left out. */
class Members {
  private text = '';

  add(name: string, value: string | number | boolean | null | undefined): this {
    return value === null || value === undefined ? this : this.json(name, JSON.stringify(value));
  }

  /** A value that is JSON text already. */
  json(name: string, value: string | null | undefined): this {
    if (value !== null && value !== undefined) this.text += `${this.text === '' ? '' : ','}"${name}":${value}`;
    return this;
  }

  time(name: string, epochMs: number | null | undefined): this {
    return epochMs === null || epochMs === undefined ? this : this.add(name, new Date(epochMs).toISOString());
  }

  toString(): string {
    return `{${this.text}}`;
  }
}

export function payloadJson(admission: Admission, event: TaskEvent): string {
  const members = new Members().add('task_id', admission.taskId).add('state', event.aep);
  addContent(members, admission, event);
  return members.toString();
}

function addContent(members: Members, admission: Admission, event: TaskEvent): void {
  switch (event.type) {
    case 'task.submitted': {
      const { policy } = admission;
      members
        .add('description', policy.description)
        .add('timeout_ms', policy.timeoutMs)
        .add('priority', policy.priority);
      members.add('generation_id', event.data.generationId).time('not_before', event.data.notBeforeAt);
      return;
    }
    case 'reeve.task.generation_started':
      members.add('generation_id', event.data.generationId).json('input', event.data.inputJson);
      return;
    case 'reeve.task.claimed':
      members.add('worker', event.data.worker).add('session_alias', sessionAlias(event.data.sessionId));
      members.time('accept_by', event.data.acceptBy);
      return;
    case 'reeve.task.followed':
      members.add('by', event.data.by);
      return;
    case 'reeve.task.held':
      members.add('unsatisfied', event.data.unsatisfied);
      return;
    case 'task.progress':
      members.add('progress', event.data.progress).add('message', event.data.message);
      return;
    case 'task.output':
      members.json('output', event.data.outputJson).add('content_type', event.data.contentType);
      if (event.data.binaryBase64 !== null) members.add('size_bytes', binaryOf(event.data.binaryBase64).length);
      if (event.data.truncated) members.add('truncated', true);
      return;
    case 'task.blocked':
      members.add('reason', event.data.reason);
      return;
    case 'reeve.task.checkpoint':
      members.json('checkpoint', event.data.checkpointJson);
      return;
    case 'reeve.task.retry_scheduled':
      members.add('reason', 'retry').add('cause', event.data.cause).time('retry_time', event.data.retryAt);
      members.add('attempt_given_back', event.data.attemptGivenBack);
      addEnding(members, event.data.ending);
      return;
    case 'reeve.task.requeued':
      members.add('keeps_place', event.data.keepsPlace);
      return;
    case 'reeve.task.suspended':
      members.add('reason', event.cause.reason?.summary).add('by_holder', event.data.byHolder);
      members.add('was_running', event.data.wasRunning);
      return;
    case 'reeve.task.resumed':
      members.json('input', event.data.inputJson);
      return;
    case 'reeve.task.policy_updated':
      members.json('policy', policyChangeJson(event.data.fields, event.data.policy));
      return;
    case 'task.cancel.requested':
    case 'reeve.task.cancel_hastened':
      members.add('reason', event.cause.reason?.summary).time('grace_deadline', event.data.graceEndsAt);
      return;
    case 'task.completed':
      members.json('result', event.data.resultJson);
      addEnding(members, event.data.ending);
      return;
    case 'task.failed':
    case 'task.timed_out':
      addEnding(members, event.data.ending);
      return;
    case 'task.cancelled':
    case 'reeve.task.skipped':
      addStopped(members, event.data, event.cause.reason?.summary);
      return;
    case 'reeve.task.repaired': {
      const { repair, mended, redacted } = event.data;
      members.add('repair', repair).json('mended', JSON.stringify(mended)).add('redacted_event_number', redacted);
      return;
    }
    case 'task.accepted':
    case 'task.started':
    case 'reeve.task.ready':
    case 'reeve.task.dependencies_met':
    case 'reeve.task.cancel_delivered':
    case 'reeve.task.cancel_acknowledged':
      return;
  }
}

function addStopped(members: Members, data: TerminalData, reason: string | undefined): void {
  members.add('reason', reason).add('owner_stopped', data.ownerStopped ? 'confirmed' : 'unconfirmed');
  addEnding(members, data.ending);
}

function addEnding(members: Members, ending: Ending | null): void {
  if (ending === null) return;
  if (ending.error !== null) members.json('error', errorJson(ending.error));
  members.add('result_ref', ending.resultRef).add('exit_code', ending.exitCode);
  members.add('error_detail', ending.errorDetail).add('invocation_id', ending.invocationId);
  if (ending.evidenceRefs.length > 0) members.json('evidence_refs', JSON.stringify(ending.evidenceRefs));
}

function errorJson(error: TaskError): string {
  const members = new Members().add('code', error.code).add('message', error.message).add('retryable', error.retryable);
  return members.json('details', error.detailsJson).toString();
}

export function binaryOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64');
}
