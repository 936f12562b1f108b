/**
 * What a worker does when the server is slow, silent, going, from the future, or has another clock.
 */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ErrorReason } from '../../gen/reeve/v1/error_reason_pb.js';
import { type ConformanceCase, demand } from '../case.js';
import { KINDS } from '../kit-contract.js';
import { claimOf } from '../offered-claim.js';
import { residentBytes } from '../resident-memory.js';

const MIB = 1_048_576;
const HOUR_MS = 3_600_000;

export const faults: readonly ConformanceCase[] = [
  {
    id: 'slow-reader',
    title: 'holds its handlers back while the server does not read, in bounded memory, and goes on afterwards',
    run: async (kit) => {
      const count = 512;
      const bytes = MIB / 4;
      // Silence is not what this is about.
      const limits = { maxOutputBytesPerAttempt: BigInt(2 * count * bytes) };
      const session = await kit.welcome({ ttlMs: 60_000, heartbeatMs: 20_000, limits });
      await kit.worksStill(session);
      const before = residentBytes(kit.worker.group);
      const claim = claimOf(KINDS.output, { count, bytes });
      session.offer(claim);
      await kit.said(claim, 'output');
      session.stream.ignore();
      await kit.signals.quiet(1_500);
      const after = residentBytes(kit.worker.group);
      const saidMeanwhile = kit.ledger.count(claim, 'output');
      demand(saidMeanwhile < count / 2, `the kit heard ${saidMeanwhile} outputs though it did not read`);
      const grownMib = Math.round(((after ?? 0) - (before ?? 0)) / MIB);
      demand(grownMib < MOST_GROWTH_MIB, `its memory grew by ${grownMib} MiB while the server did not read`);
      session.stream.listen();
      await kit.completes(claim);
      demand(kit.ledger.count(claim, 'output') === count, `${kit.ledger.count(claim, 'output')} of ${count} outputs`);
      await kit.worksStill(session);
    },
  },
  {
    id: 'silence',
    title: 'reconnects when the server has been silent for more than twice the heartbeat interval',
    run: async (kit) => {
      const session = await kit.welcome({ ttlMs: 900, heartbeatMs: 300 });
      session.answersHeartbeats = false;
      const back = await kit.welcomeBack(session, []);
      const beats = session.heardOf('heartbeat').length;
      demand(beats > 0, 'it gave up a stream on which it had sent no heartbeat itself');
      await kit.worksStill(back);
    },
  },
  {
    id: 'server-drain',
    title: 'keeps working when the server is going, and reconnects after the stated delay',
    run: async (kit) => {
      const session = await kit.welcome();
      const claim = claimOf(KINDS.sleep, { ms: 1_500 });
      session.offer(claim);
      await kit.said(claim, 'progress');
      const delayMs = 500;
      const saidAt = performance.now();
      const value = { reconnectAfter: durationFromMs(delayMs), grace: durationFromMs(10_000) };
      session.stream.send({ case: 'drain', value });
      const back = await kit.welcomeBack(session, [[claim, 0]]);
      const afterMs = Math.round(performance.now() - saidAt);
      demand(afterMs > delayMs * 0.9, `it reconnected after ${afterMs} ms, the server asked for ${delayMs} ms`);
      await kit.completes(claim);
      await kit.worksStill(back);
    },
  },
  {
    id: 'clock-behind',
    title: 'does not mind a server whose clock is hours behind',
    run: async (kit) => {
      const session = await kit.welcome({ ttlMs: 1_500, heartbeatMs: 500, clockOffsetMs: -6 * HOUR_MS });
      const claim = claimOf(KINDS.sleep, { ms: 1_200 }, new Date(session.serverNowMs + HOUR_MS));
      session.offer(claim);
      await kit.completes(claim);
      demand(!session.isOver, 'it gave up the stream');
      await kit.worksStill(session);
    },
  },
  {
    id: 'clock-ahead',
    title: 'does not mind a server whose clock is hours ahead',
    run: async (kit) => {
      const session = await kit.welcome({ ttlMs: 1_500, heartbeatMs: 500, clockOffsetMs: 6 * HOUR_MS });
      const claim = claimOf(KINDS.sleep, { ms: 1_200 }, new Date(session.serverNowMs + HOUR_MS));
      session.offer(claim);
      await kit.completes(claim);
      demand(!session.isOver, 'it gave up the stream');
      await kit.worksStill(session);
    },
  },
  {
    id: 'unknown-frame',
    title: 'refuses a kind of frame that it does not know as UNSUPPORTED, or passes it over, and works on',
    run: async (kit) => {
      const session = await kit.welcome();
      const frameId = session.stream.sendUnknown();
      await kit.worksStill(session);
      for (const { frameId: named, refusal } of session.heardOf('rejection')) {
        demand(named === BigInt(frameId), `it refused frame ${named}, the unknown one was ${frameId}`);
        demand(refusal?.reason === ErrorReason.UNSUPPORTED, `it refused with ${ErrorReason[refusal?.reason ?? 0]}`);
      }
    },
  },
];

/** Well below what is said meanwhile, and room for a worker's own bound and its garbage. */
const MOST_GROWTH_MIB = 80;
