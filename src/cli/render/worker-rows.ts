/**
 * Workers as a table: what an operator scans for.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { SessionStateSchema, type WorkerSession } from '../../gen/reeve/v1/worker_service_pb.js';
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

export function workerRows(workers: readonly WorkerSession[], nowMs: number, width: number): readonly string[] {
  return renderTable(
    COLUMNS,
    workers.map((worker) => [
      plainText(worker.workerName),
      worker.sessionAlias,
      enumWord(SessionStateSchema, worker.state),
      worker.unary ? 'unary' : worker.attached ? 'attached' : 'away',
      `${worker.held}/${worker.slots}`,
      lastHeard(worker, nowMs),
      worker.unary ? '' : worker.queues.length === 0 ? '*' : plainText(worker.queues.join(', ')),
      plainText(worker.actionKinds.join(', ')),
    ]),
    width,
  );
}

/** A session ends one TTL after it was last heard. */
function lastHeard({ expireTime, ttl }: WorkerSession, nowMs: number): string {
  if (expireTime === undefined || ttl === undefined) return '';
  const heardMs = timestampMs(expireTime) - Number(ttl.seconds) * 1_000 - ttl.nanos / 1_000_000;
  return `${formatDuration(Math.max(0, nowMs - heardMs))} ago`;
}
