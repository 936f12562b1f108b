/**
 * The order of a stop (quality.md): stop claims, tell the workers, keep renewing while they finish or move, flush the
 * commits, close the streams, close the store. Every step is taken whatever the one before came to.
 */
import type { Server } from '@grpc/grpc-js';
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { QuietPeriod } from '../dispatcher/quiet-period.js';
import type { Clock } from '../lib/clock.js';
import type { WorkStreams } from '../services/worker-service.js';
import type { TaskFeed } from '../services/task-feed.js';
import type { TaskStore } from '../store/task-store.js';
import type { Propagation } from '../timers/propagation.js';
import type { TaskTimers } from '../timers/task-timers.js';
import type { Health } from './health.js';
import type { Log } from './log.js';

export interface RunningParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly server: Server;
  readonly health: Health;
  readonly dispatcher: Dispatcher;
  readonly streams: WorkStreams;
  readonly timers: TaskTimers;
  readonly propagation: Propagation;
  readonly quiet: QuietPeriod;
  readonly feed: TaskFeed;
  readonly authority: Authority;
  readonly store: TaskStore;
}

/** How long streams may take to end by themselves once nothing is accepted any more. */
const CLOSE_PATIENCE_MS = 1_000;
/** How often it is looked whether the workers are gone before the grace is over. */
const GRACE_CHECK_MS = 50;

export async function drain(parts: RunningParts, graceMs: number, reconnectAfterMs: number): Promise<void> {
  const { log, clock, health, dispatcher, timers, propagation, quiet, feed, authority, store } = parts;
  log.info({ grace_ms: graceMs }, 'stopping');
  health.notServing();
  dispatcher.beginDrain(reconnectAfterMs, graceMs);
  await graceOver(parts, graceMs);
  timers.stop();
  propagation.stop();
  await authority.stop();
  dispatcher.stop();
  await closeStreams(parts);
  feed.close();
  quiet.stop();
  await store.close();
  log.info({ at: clock.nowMs() }, 'stopped');
}

/** The grace is for workers: when no stream is open any more there is nobody to wait for. */
async function graceOver({ clock, streams }: RunningParts, graceMs: number): Promise<void> {
  const endsAt = clock.monotonicMs() + graceMs;
  while (clock.monotonicMs() < endsAt && streams.open > 0) {
    await new Promise<void>((resolve) => clock.after(GRACE_CHECK_MS, resolve));
  }
}

async function closeStreams({ clock, server }: RunningParts): Promise<void> {
  await new Promise<void>((resolve) => {
    const patience = clock.after(CLOSE_PATIENCE_MS, () => {
      server.forceShutdown();
      resolve();
    });
    server.tryShutdown(() => {
      patience.cancel();
      resolve();
    });
  });
}
