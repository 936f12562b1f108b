/**
 * Watching: committed events as an async iterator that outlives its streams. A broken stream is resumed from the last
 * cursor; nothing is left out, and where one task is watched nothing is told twice.
 */
import { status } from '@grpc/grpc-js';
import type { WatchRequest, WatchResponse } from '../../gen/reeve/v1/task_service_pb.js';
import { Backoff } from '../transport/backoff.js';
import { requireSpanMs } from '../transport/option-checks.js';
import type { Patience } from '../transport/reach.js';
import { type ReeveError, toReeveError } from '../transport/reeve-error.js';
import { pause } from '../transport/retry.js';
import { abortError } from '../transport/rpc.js';
import { readEvent, type TaskEvent } from './event.js';
import type { WatchConnections, WatchLease } from './watch-connections.js';

/** What to follow: one task by its id, a task with everything below it, a queue, or a namespace. */
export type WatchScope =
  | string
  | { readonly subtreeOf: string }
  | { readonly queue: string; readonly namespace?: string }
  | { readonly namespace: string };

export interface WatchOptions {
  /** Go on after this, the cursor of an earlier event. */
  readonly cursor?: string;
  /** Without a cursor: from the first event kept (true, the default) or only what commits from now on. */
  readonly fromStart?: boolean;
  /** Only events that AEP consumers see. */
  readonly aepOnly?: boolean;
  /** Ends the iteration by throwing its reason. */
  readonly signal?: AbortSignal;
  /** How long to try to get back to a broken stream, ms, before its error is thrown. Default 300,000. */
  readonly reconnectMs?: number;
}

export interface WatchedEvent extends TaskEvent {
  /** Resume from here with `watch(scope, { cursor })`. Opaque. */
  readonly cursor: string;
}

/** An event, or the word that everything up to here has been told. */
export type WatchItem =
  { readonly kind: 'event'; readonly event: WatchedEvent } | { readonly kind: 'bookmark'; readonly cursor: string };

/** A stream that has lasted so long, ms, was no failure, whatever it told: longer than any pause. */
const LASTING_MS = 10_000;

/**
 * Ends after the terminal event of a single task; goes on for ever otherwise.
 *
 * @throws ReeveError MALFORMED, TASK_NOT_FOUND, CURSOR_INVALID, CURSOR_EXPIRED, UNREACHABLE, or what kept it from
 *   reconnecting.
 */
export async function* watchItems(
  connections: WatchConnections,
  scope: WatchScope,
  options: WatchOptions = {},
): AsyncGenerator<WatchItem, void, undefined> {
  const reconnectMs = requireSpanMs('reconnectMs', options.reconnectMs ?? 300_000);
  const patience = connections.reach.patience(options.signal);
  try {
    yield* itemsOf(connections, scope, { ...options, reconnectMs }, patience);
  } catch (error) {
    throw connections.reach.explain(error);
  } finally {
    patience.end();
  }
}

async function* itemsOf(
  connections: WatchConnections,
  scope: WatchScope,
  options: WatchOptions & { readonly reconnectMs: number },
  { signal, end }: Patience,
): AsyncGenerator<WatchItem, void, undefined> {
  const { reconnectMs } = options;
  const single = typeof scope === 'string';
  const backoff = new Backoff({ initialMs: 50, maximumMs: 5_000 });
  let cursor = options.cursor ?? '';
  let lastEventNumber = 0;
  // An answer alone is no success: a server that ends every stream after its first bookmark would be asked for ever,
  // without a pause. What was told that had not been told, or a stream that lasted, is one.
  let brokenSince: number | null = null;
  const wasOfUse = (): void => {
    backoff.reset();
    brokenSince = null;
  };
  for (;;) {
    let ending: ReeveError | null = null;
    let openSince: number | null = null;
    const lease = connections.open(toRequest(scope, cursor, options), signal);
    try {
      for await (const response of messagesOf(lease.stream)) {
        end();
        openSince ??= performance.now();
        cursor = response.cursor;
        const item = readItem(response);
        if (item === null || (single && item.kind === 'event' && item.event.eventNumber <= lastEventNumber)) continue;
        if (single && item.kind === 'event') lastEventNumber = item.event.eventNumber;
        if (item.kind === 'event') wasOfUse();
        yield item;
      }
    } catch (error) {
      if (signal?.aborted === true) throw abortError(signal);
      ending = toReeveError(error);
    } finally {
      lease.release();
    }
    if (openSince !== null && performance.now() - openSince >= LASTING_MS) wasOfUse();
    if (ending === null && single) return;
    if (ending !== null && !canResume(ending)) throw ending;
    const now = Date.now();
    brokenSince ??= now;
    if (ending !== null && now - brokenSince > reconnectMs) throw ending;
    if (ending?.reason === 'SLOW_READER') cursor = ending.metadata['cursor'] ?? cursor;
    await pause(backoff.next(ending?.retryAfterMs), signal);
  }
}

/** The stream's declaration leaves the type of its items open. */
function messagesOf(stream: WatchLease['stream']): AsyncIterable<WatchResponse> {
  return stream;
}

function canResume(error: ReeveError): boolean {
  if (error.retryable) return true;
  // Reeve names its reasons; without one it is the wire that broke.
  const ofTheWire = error.reason === status[error.code];
  return (
    ofTheWire && (error.code === status.INTERNAL || error.code === status.CANCELLED || error.code === status.UNKNOWN)
  );
}

function readItem({ cursor, item }: WatchResponse): WatchItem | null {
  switch (item.case) {
    case 'event':
      return { kind: 'event', event: { ...readEvent(item.value), cursor } };
    case 'bookmark':
      return { kind: 'bookmark', cursor };
    case undefined:
      return null;
  }
}

type ScopeField = WatchRequest['scope'];

function toRequest(scope: WatchScope, cursor: string, options: WatchOptions) {
  const { fromStart, aepOnly = false } = options;
  return {
    scope: toScope(scope),
    cursor,
    aepOnly,
    // Together with a cursor the server refuses it.
    ...(fromStart !== undefined && cursor === '' && { fromStart }),
  };
}

function toScope(scope: WatchScope): WatchScopeInit {
  if (typeof scope === 'string') return { case: 'taskId', value: scope };
  if ('subtreeOf' in scope) return { case: 'subtreeOf', value: scope.subtreeOf };
  if ('queue' in scope) return { case: 'queue', value: { namespace: scope.namespace ?? '', queue: scope.queue } };
  return { case: 'namespace', value: scope.namespace };
}

type WatchScopeInit =
  | Exclude<ScopeField, { case: 'queue' } | { case: undefined }>
  | { case: 'queue'; value: { namespace: string; queue: string } };
