/**
 * Workers as a table: what an operator scans for; of one that is gone, how it ended and what it lost.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  SessionEndCauseSchema,
  SessionState,
  SessionStateSchema,
  type WorkerSession,
} from '../../gen/reeve/v1/worker_service_pb.js';
import { enumWord } from '../options/argument-parsers.js';
import { formatDuration } from '../options/duration.js';
import { plainText } from './plain-text.js';
import { type Column, renderTable } from './table.js';

const COLUMNS: readonly Column[] = [
  { title: 'WORKER', maxWidth: 40 },
  { title: 'SESSION' },
  { title: 'STATE' },
  { title: 'STREAM' },
  { title: 'HELD', align: 'right' },
  { title: 'HEARD', align: 'right' },
  { title: 'QUEUES', maxWidth: 30 },
  { title: 'KINDS', maxWidth: 40 },
];

/** Behind the others, when any is gone. */
const GONE_COLUMNS: readonly Column[] = [{ title: 'ENDED' }, { title: 'LOST', maxWidth: 40 }];

export function workerRows(workers: readonly WorkerSession[], nowMs: number, width: number): readonly string[] {
  const isAnyGone = workers.some(isGone);
  return renderTable(
    isAnyGone ? [...COLUMNS, ...GONE_COLUMNS] : COLUMNS,
    workers.map((worker) => [
      plainText(worker.workerName),
      worker.sessionAlias,
      enumWord(SessionStateSchema, worker.state),
      worker.unary ? 'unary' : isGone(worker) ? '' : worker.attached ? 'attached' : 'away',
      isGone(worker) ? String(worker.end?.held ?? '') : `${worker.held}/${worker.slots}`,
      isGone(worker) ? '' : lastHeard(worker, nowMs),
      worker.unary ? '' : worker.queues.length === 0 ? '*' : plainText(worker.queues.join(', ')),
      plainText(worker.actionKinds.join(', ')),
      ...(isAnyGone ? ending(worker, nowMs) : []),
    ]),
    width,
  );
}

function isGone({ state }: WorkerSession): boolean {
  return state === SessionState.GONE;
}

function ending({ end }: WorkerSession, nowMs: number): readonly string[] {
  if (end?.endTime === undefined) return ['', ''];
  const ago = `${formatDuration(Math.max(0, nowMs - timestampMs(end.endTime)))} ago`;
  const cause = enumWord(SessionEndCauseSchema, end.cause).replace('_', ' ');
  const more = end.held > end.heldTaskIds.length ? ' …' : '';
  return [`${ago}, ${cause}${end.drained ? ', drained' : ''}`, plainText(end.heldTaskIds.join(', ')) + more];
}

/** A session ends one TTL after it was last heard. */
function lastHeard({ expireTime, ttl }: WorkerSession, nowMs: number): string {
  if (expireTime === undefined || ttl === undefined) return '';
  const heardMs = timestampMs(expireTime) - Number(ttl.seconds) * 1_000 - ttl.nanos / 1_000_000;
  return `${formatDuration(Math.max(0, nowMs - heardMs))} ago`;
}
