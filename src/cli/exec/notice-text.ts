/**
 * What a worker tells about itself, as a line of log: for people, or JSON with names as in the proto files.
 */
import type { WorkerNotice } from '../../sdk/worker/notices.js';
import { isReeveError } from '../../sdk/transport/reeve-error.js';
import { formatDuration } from '../options/duration.js';

export function noticeText(notice: WorkerNotice): string {
  switch (notice.type) {
    case 'attached':
      return `attached as session ${notice.sessionAlias}${notice.resumed ? ', going on' : ''}`;
    case 'detached':
      return `detached (${notice.error.reason}: ${notice.error.message}); next try in ${formatDuration(notice.retryInMs)}`;
    case 'session_lost':
      return `the session is lost, and ${notice.claims} claims with it`;
    case 'lease_lost':
      return `task ${notice.taskId}: lease lost (${notice.why})`;
    case 'cancel_requested':
      return `task ${notice.taskId}: cancel requested`;
    case 'event_refused':
      return `task ${notice.taskId}: event ${notice.eventSeq} refused (${notice.error.reason}: ${notice.error.message})`;
    case 'frame_refused':
      return `frame ${notice.frameId} refused (${notice.error.reason}: ${notice.error.message})`;
    case 'settlement_abandoned':
      return `task ${notice.taskId}: no settlement was taken (${notice.error.reason}: ${notice.error.message})`;
    case 'outputs_dropped':
      return `task ${notice.taskId}: over its outputs, further ones are dropped`;
    case 'stalled':
      return `the worker computed for ${formatDuration(Math.round(notice.silentMs))} without listening`;
    case 'server_draining':
      return `the service is going; next try in ${formatDuration(notice.reconnectInMs)}`;
    case 'draining':
      return `draining, ${notice.running} running`;
    case 'drained':
      return `drained, ${notice.released} handed back`;
  }
}

export function logJson(fields: object): string {
  const members = Object.entries(fields).map(([name, value]: [string, unknown]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    isReeveError(value) ? { reason: value.reason, message: value.message, metadata: value.metadata } : value,
  ]);
  return JSON.stringify({ time: new Date().toISOString(), ...(Object.fromEntries(members) as object) });
}
