/**
 * The order of a stop (quality.md): stop claims, tell the workers, keep renewing while they finish or move, flush the
 * commits, close the streams, close the store. Every step is taken whatever the one before came to, and none is waited
 * for beyond its share of the time: the stop is over within the grace and STOP_PATIENCE_MS, if need be with an error
 * that names what did not work.
 */
import type { Server } from '@grpc/grpc-js';
import { type Engine, engineStop } from '../deployment/engine.js';
import type { Clock, Timer } from '../lib/clock.js';
import type { WorkStreams } from '../services/worker-service.js';
import type { TaskFeed } from '../services/task-feed.js';
import type { TaskStore } from '../store/task-store.js';
import type { Health } from './health.js';
import type { Log } from './log.js';
import type { StoreHealth } from './store-health.js';

export interface RunningParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly server: Server;
  readonly health: Health;
  readonly storeHealth: StoreHealth;
  readonly engine: Engine;
  readonly streams: WorkStreams;
  readonly feed: TaskFeed;
  readonly store: TaskStore;
}

export interface StopTerms {
  readonly graceMs: number;
  readonly reconnectAfterMs: number;
  /** Where connections come in; null: nowhere yet. */
  readonly address: string | null;
}

/** What a stop may take beyond the grace; the steps below share it. */
export const STOP_PATIENCE_MS = 2_000;
/** For the works that were accepted to be committed and answered. */
const FLUSH_PATIENCE_MS = 1_000;
/** How long streams may take to end by themselves once nothing is accepted any more. */
const CLOSE_PATIENCE_MS = 500;
/** What is left for the store in the worst case. */
const STORE_PATIENCE_MS = STOP_PATIENCE_MS - FLUSH_PATIENCE_MS - CLOSE_PATIENCE_MS;
/** How often it is looked whether the workers are gone before the grace is over. */
const GRACE_CHECK_MS = 50;

/** A stop that is over and did not go as it should; each failure is in the log. */
export class StopError extends Error {
  constructor(readonly failures: readonly unknown[]) {
    super(`the stop did not go as it should: ${failures.map(messageOf).join('; ')}`, { cause: failures[0] });
    this.name = 'StopError';
  }
}

/** Throws StopError once everything is over, when a step failed or did not end in its time. */
export async function drain(parts: RunningParts, { graceMs, reconnectAfterMs, address }: StopTerms): Promise<void> {
  const { log, clock, health, storeHealth, engine, feed, store } = parts;
  const { dispatcher, quiet } = engine;
  const steps = new Steps(log, clock);
  log.info({ grace_ms: graceMs }, 'stopping');
  await steps.take('say that nothing is served any more', () => {
    storeHealth.stop();
    health.notServing();
  });
  await steps.take('stop the claims', () => dispatcher.beginDrain(reconnectAfterMs, graceMs));
  await steps.take('wait for the workers', () => graceOver(parts, graceMs));
  const { background, flush } = engineStop(engine);
  for (const [step, stop] of background) await steps.take(step, stop);
  await steps.take('commit what was accepted', flush, FLUSH_PATIENCE_MS);
  await steps.take('end the sessions', () => dispatcher.stop());
  await steps.take('close the streams', () => closeStreams(parts, address));
  await steps.take('end the subscriptions', () => feed.close());
  await steps.take('end the quiet period', () => quiet.stop());
  await steps.take('close the store', () => store.close(), STORE_PATIENCE_MS);
  if (steps.failures.length > 0) throw new StopError(steps.failures);
  log.info({ at: clock.nowMs() }, 'stopped');
}

class Steps {
  readonly failures: unknown[] = [];

  constructor(
    private readonly log: Log,
    private readonly clock: Clock,
  ) {}

  /** Never throws; a step that fails, or goes on beyond its patience, is left behind with a line in the log. */
  async take(step: string, work: () => void | Promise<void>, patienceMs?: number): Promise<void> {
    try {
      await (patienceMs === undefined ? work() : this.within(patienceMs, step, work));
    } catch (error) {
      this.failures.push(error);
      this.log.error({ err: error, step }, 'a step of the stop failed');
    }
  }

  private async within(patienceMs: number, step: string, work: () => void | Promise<void>): Promise<void> {
    const ended = Promise.resolve(work());
    // Told of below, or too late to be of use.
    ended.catch(() => undefined);
    let timer: Timer | null = null;
    const late = new Promise<never>((_, reject) => {
      const tell = (): void => reject(new Error(`"${step}" did not end within ${patienceMs} ms`));
      timer = this.clock.after(patienceMs, tell);
    });
    return Promise.race([ended, late]).finally(() => timer?.cancel());
  }
}

/** The grace is for workers: when no stream is open any more there is nobody to wait for. */
async function graceOver({ clock, streams }: RunningParts, graceMs: number): Promise<void> {
  const endsAt = clock.monotonicMs() + graceMs;
  for (;;) {
    const leftMs = endsAt - clock.monotonicMs();
    if (leftMs <= 0 || streams.open === 0) return;
    await new Promise<void>((resolve) => clock.after(Math.min(GRACE_CHECK_MS, leftMs), resolve));
  }
}

async function closeStreams({ clock, server }: RunningParts, address: string | null): Promise<void> {
  await new Promise<void>((resolve) => {
    // Ends by force what is not closed in time; forceShutdown of grpc-js 1.14 does so only while channelz is on.
    if (address !== null) server.drain(address, CLOSE_PATIENCE_MS);
    const patience = clock.after(CLOSE_PATIENCE_MS, resolve);
    server.tryShutdown(() => {
      patience.cancel();
      resolve();
    });
  });
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
