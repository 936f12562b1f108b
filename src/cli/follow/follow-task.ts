/**
 * Events, replayed and then as they commit, over as many streams as it takes. Those of one task end after the terminal
 * event of its current generation. Never yields an event twice; what was purged before it could be read is told and
 * passed over.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { WatchRequestSchema, WatchResponse } from '../../gen/reeve/v1/task_service_pb.js';
import { Backoff } from '../../sdk/transport/backoff.js';
import { status } from '@grpc/grpc-js';
import { type ReeveError, toReeveError } from '../../sdk/transport/reeve-error.js';
import { pause } from '../../sdk/transport/retry.js';
import type { Connection } from '../connection.js';

/** How long a lost service is waited for before the command gives up. */
const PATIENCE_MS = 120_000;
/** How long one is waited for that never answered at all: a wrong address looks like this. */
const FIRST_PATIENCE_MS = 3_000;

export interface FollowOptions {
  /** Also answers that carry no event. Default: events only. */
  readonly bookmarks?: boolean;
  /** Only what commits from now on. Default: from the beginning. */
  readonly fromNow?: boolean;
  readonly aepOnly?: boolean;
  /** Told when the stream broke and will be opened again. */
  readonly onInterruption?: (reason: string) => void;
}

export type WatchScope = Exclude<MessageInitShape<typeof WatchRequestSchema>['scope'], undefined>;

/** As `follow`, of one task. */
export function followTask(
  connection: Connection,
  taskId: string,
  options: FollowOptions = {},
): AsyncGenerator<WatchResponse, void, void> {
  return follow(connection, { case: 'taskId', value: taskId }, options);
}

/** Throws ReeveError: at once what a retry cannot change, else what still holds after two minutes (three seconds when
 * nobody ever answered). */
export async function* follow(
  connection: Connection,
  scope: WatchScope,
  options: FollowOptions = {},
): AsyncGenerator<WatchResponse, void, void> {
  const backoff = new Backoff({ initialMs: 100, maximumMs: 2_000 });
  let cursor = '';
  let lastSequence = 0n;
  let brokenSince: number | undefined;
  let answered = false;
  for (;;) {
    try {
      const stream = connection.tasks.watch({
        scope,
        cursor,
        aepOnly: options.aepOnly ?? false,
        ...(cursor === '' && options.fromNow === true && { fromStart: false }),
      });
      try {
        for await (const response of stream as AsyncIterable<WatchResponse>) {
          brokenSince = undefined;
          answered = true;
          backoff.reset();
          cursor = response.cursor;
          if (response.item.case !== 'event') {
            if (options.bookmarks === true) yield response;
            continue;
          }
          const { sequence } = response.item.value;
          // At the seam of two streams an event may come again.
          if (sequence <= lastSequence) continue;
          lastSequence = sequence;
          yield response;
        }
      } finally {
        stream.cancel();
      }
      if (scope.case === 'taskId') return;
      await pause(backoff.next());
    } catch (caught) {
      const error = toReeveError(caught);
      const earliest = error.metadata['earliest_cursor'];
      if (error.reason === 'CURSOR_EXPIRED' && earliest !== undefined && scope.case !== 'taskId') {
        options.onInterruption?.(error.reason);
        cursor = earliest;
        continue;
      }
      brokenSince ??= Date.now();
      const patienceMs = answered ? PATIENCE_MS : FIRST_PATIENCE_MS;
      if (!canResume(error) || Date.now() - brokenSince > patienceMs) throw error;
      if (answered) options.onInterruption?.(error.reason);
      await pause(backoff.next(error.retryAfterMs));
    }
  }
}

/** Reeve names its reasons; an error without one means that the wire broke. */
function canResume(error: ReeveError): boolean {
  if (error.retryable) return true;
  const broken: readonly status[] = [status.INTERNAL, status.CANCELLED, status.UNKNOWN];
  return error.reason === status[error.code] && broken.includes(error.code);
}
