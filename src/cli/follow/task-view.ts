/**
 * Where a task stands, folded from its events for a live display. Display only: what counts is read from the service.
 */
import type { Event } from '../../gen/reeve/v1/event_pb.js';
import { TaskStatus } from '../../gen/reeve/v1/task_pb.js';
import { eventPayload } from '../render/event-line.js';

export interface TaskView {
  readonly status: TaskStatus;
  /** Claims of the current generation, less those that were handed back. */
  readonly attempt: number;
  readonly worker: string;
  readonly fraction: number | undefined;
  readonly message: string;
  readonly blocked: string;
  readonly cancelling: boolean;
  readonly outputs: number;
}

export const emptyView: TaskView = {
  status: TaskStatus.UNSPECIFIED,
  attempt: 0,
  worker: '',
  fraction: undefined,
  message: '',
  blocked: '',
  cancelling: false,
  outputs: 0,
};

export function foldView(view: TaskView, event: Event): TaskView {
  const payload = eventPayload(event);
  const status = event.toStatus === TaskStatus.UNSPECIFIED ? view.status : event.toStatus;
  switch (event.type) {
    case 'task.submitted':
    case 'reeve.task.generation_started':
      return { ...emptyView, status };
    case 'reeve.task.claimed': {
      const worker = text(payload['worker'], event.actor?.id ?? '');
      return { ...view, status, attempt: view.attempt + 1, worker, fraction: undefined, message: '', blocked: '' };
    }
    case 'task.progress': {
      const fraction = typeof payload['progress'] === 'number' ? payload['progress'] : view.fraction;
      return { ...view, fraction, message: text(payload['message'], view.message), blocked: '' };
    }
    case 'task.started':
      return { ...view, blocked: '' };
    case 'task.output':
      return { ...view, outputs: view.outputs + 1, blocked: '' };
    case 'task.blocked':
      return { ...view, status, blocked: text(payload['reason'], 'blocked') };
    case 'task.cancel.requested':
      return { ...view, status, cancelling: true };
    case 'reeve.task.retry_scheduled':
    case 'reeve.task.suspended': {
      const givenBack = payload['attempt_given_back'] === true || payload['by_holder'] === true;
      const attempt = givenBack ? view.attempt - 1 : view.attempt;
      return { ...view, status, attempt, worker: '', blocked: '' };
    }
    default:
      return { ...view, status };
  }
}

function text(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
