/**
 * The entry of the store's worker threads: a writer, which commits and answers hot reads, and a reader for what may be
 * long. It opens its connection, says so, and then answers one request after the other. SQLite is only touched here.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { HistoryChain } from '../history-chain.js';
import { isNeeded } from '../family-guards.js';
import { StoreError } from '../store-error.js';
import { AuditLists } from './audit-lists.js';
import { AuditReads } from './audit-reads.js';
import { type FileLock, lockFile } from './file-lock.js';
import { HotReads } from './hot-reads.js';
import { EventReads } from './event-reads.js';
import { LongReads } from './long-reads.js';
import { openForReading, openForWriting, readChainFrom, readIncarnation, readSecret } from './open-database.js';
import type { Answer, ReaderCalls, StoreIdentity, ThreadData, WriterCalls } from './protocol.js';
import type { SqliteSettings } from './settings.js';
import { Writer, asStoreError } from './writer.js';

interface OpenWriter {
  readonly calls: WriterCalls;
  readonly identity: StoreIdentity;
}

function writerCalls(settings: SqliteSettings): OpenWriter {
  const lock = lockFile(settings.path);
  try {
    return openWriter(settings, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function openWriter(settings: SqliteSettings, lock: FileLock): OpenWriter {
  const db = openForWriting(settings);
  const writer = new Writer(db, new HistoryChain(settings.chainKey));
  const reads = new HotReads(db, writer.purged);
  const calls: WriterCalls = {
    commit: (batch) => writer.commit(batch),
    loadTasks: (taskIds) => reads.loadTasks(taskIds),
    findTaskId: (namespace, idempotencyKey) => reads.findTaskId(namespace, idempotencyKey),
    findLedgerEntry: (taskId, intentKey) => reads.findLedgerEntry(taskId, intentKey),
    readEvent: (taskId, eventNumber) => reads.readEvent(taskId, eventNumber),
    readDiagnostics: (taskId, limit) => reads.readDiagnostics(taskId, limit),
    routeKeys: () => [...writer.routes.keys()],
    readyTasks: (routeKey, after, limit) => reads.readyTasks(routeKey, after, limit),
    dueTasks: (now, after, limit) => reads.dueTasks(now, after, limit),
    earliestTimer: () => reads.earliestTimer(),
    purgeable: (now, after, limit) => reads.purgeable(now, after, limit),
    sweepPurged: () => writer.sweepPurged(),
    isNeeded: (taskId) => isNeeded(taskId, writer.family),
    findOperation: (key) => writer.purged.findOperation(key),
    loadSession: (sessionId) => writer.sessions.get(sessionId),
    sessions: (expiredBefore, limit) => writer.sessions.alive(expiredBefore, limit),
    sessionsAhead: (now, limit) => writer.sessions.ahead(now, limit),
    goneSessions: (afterId, limit) => writer.sessions.gone(afterId, limit),
    forgetSessions: (now, most) => writer.forgetSessions(now, most),
    leaseHolders: () => reads.leaseHolders(),
    tasksOfSession: (sessionId, afterOrder, limit) => reads.tasksOfSession(sessionId, afterOrder, limit),
    familyCounts: (taskIds) => taskIds.map((taskId) => writer.family.counts(taskId)),
    liveChildren: (parentId, afterOrder, limit) => writer.family.liveChildren(parentId, afterOrder, limit),
    waitersOf: (taskId, generation, afterOrder, limit) =>
      writer.family.waitersOf(taskId, generation, afterOrder, limit),
    propagations: (after, limit) => writer.family.propagations(after, limit),
    permits: (after, limit) => writer.permits.states(after, limit),
    permitWait: (taskId) => writer.permits.waitOf(taskId),
    close: () => {
      db.pragma('wal_checkpoint(TRUNCATE)');
      db.close();
      lock.release();
      return null;
    },
  };
  return { calls, identity: { secret: readSecret(db), incarnation: readIncarnation(db) } };
}

function readerCalls(settings: SqliteSettings): ReaderCalls {
  const db = openForReading(settings);
  const reads = new LongReads(db);
  const audit = new AuditReads(db, new HistoryChain(settings.chainKey), readChainFrom(db));
  const lists = new AuditLists(db);
  const events = new EventReads(db, reads);
  return {
    readHistory: (taskId, afterNumber, limit, maxBytes) => reads.readHistory(taskId, afterNumber, limit, maxBytes),
    readEvents: (scope, after, limit, maxBytes) => events.readEvents(scope, after, limit, maxBytes),
    eventBounds: () => events.eventBounds(),
    listTasks: (query) => reads.listTasks(query),
    auditTasks: (query) => audit.auditTasks(query),
    auditHistory: (order, afterNumber, throughNumber) => audit.auditHistory(order, afterNumber, throughNumber),
    auditKeys: (query) => lists.keys(query),
    auditSessions: (query) => lists.sessions(query),
    auditPermits: (query) => lists.permits(query),
    close: () => {
      db.close();
      return null;
    },
  };
}

function serve(port: MessagePort, { role, settings }: ThreadData): void {
  const answer = (make: () => unknown): void => {
    let message: Answer;
    try {
      message = { ok: true, value: make() };
    } catch (error) {
      const failure = asStoreError(error, 'unavailable');
      message = { ok: false, failure: failure.failure, message: failure.message };
    }
    port.postMessage(message);
  };
  let calls: Readonly<Record<string, (...args: never) => unknown>> = {};
  answer(() => {
    if (role === 'reader') {
      calls = { ...readerCalls(settings) };
      return null;
    }
    const writer = writerCalls(settings);
    calls = { ...writer.calls };
    return writer.identity;
  });
  port.on('message', ([name, args]: readonly [string, readonly unknown[]]) => {
    answer(() => {
      const call = calls[name];
      if (call === undefined) throw new StoreError('fatal', `the ${role} thread is not open, or has no ${name}`);
      return call(...(args as never));
    });
    if (name === 'close') port.close();
  });
}

if (parentPort !== null) serve(parentPort, workerData as ThreadData);
