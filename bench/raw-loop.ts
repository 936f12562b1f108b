/**
 * The ceiling: what better-sqlite3 alone carries in one loop, writing the rows of the store with the store's own
 * schema, settings and statements, and no threads, checks or messages around it. Every other figure of a bench is
 * worth its ratio to this one, taken in the same run on the same machine.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { v7 as uuid } from 'uuid';
import { resolvePolicy } from '../src/kernel/admission/policy.js';
import type { Cause } from '../src/kernel/cause.js';
import { judge } from '../src/kernel/decide.js';
import { Draft } from '../src/kernel/draft.js';
import { readyOrder } from '../src/kernel/placement.js';
import type { Admission, TaskRecord } from '../src/kernel/record.js';
import { nextDueAt } from '../src/kernel/timers.js';
import { judgeReport } from '../src/kernel/worker-report.js';
import { encodeAdmission } from '../src/store/admission-codec.js';
import { encodeEvents } from '../src/store/history-codec.js';
import { encodeRecord } from '../src/store/record-codec.js';
import { openForWriting } from '../src/store/sqlite/open-database.js';
import { settingsOf } from '../src/store/sqlite/settings.js';
import { type WriteStatements, writeStatements } from '../src/store/sqlite/write-statements.js';

export interface RawLoopOptions {
  readonly tasks: number;
  readonly transitionsPerTransaction: number;
  readonly singleCommits: number;
}

export interface RawLoopFigures {
  /** Three per task: submit, claim, settle. */
  readonly transitionsPerSecond: number;
  readonly microsecondsPerTask: number;
  /** A transaction of one transition. */
  readonly singleCommitP50Ms: number;
  readonly singleCommitP99Ms: number;
}

const DEFAULTS: RawLoopOptions = { tasks: 20_000, transitionsPerTransaction: 256, singleCommits: 1_000 };

export function rawLoop(options: Partial<RawLoopOptions> = {}): RawLoopFigures {
  const { tasks, transitionsPerTransaction, singleCommits } = { ...DEFAULTS, ...options };
  const folder = mkdtempSync(join(tmpdir(), 'reeve-raw-loop-'));
  const db = openForWriting(settingsOf({ path: join(folder, 'raw.db') }));
  try {
    const loop = new Loop(writeStatements(db));
    const lives = Array.from({ length: tasks }, () => lifeOfTask());
    const perLoop = Math.max(1, Math.floor(transitionsPerTransaction / 3));
    const started = performance.now();
    // As in the service, what one transaction submits the next claims and the one after settles.
    for (let at = 0; at < tasks + 2 * perLoop; at += perLoop) {
      loop.transaction(() => {
        for (const life of lives.slice(at, at + perLoop)) loop.submit(life);
        for (const life of slice(lives, at - perLoop, perLoop)) loop.change(life, life.claimed);
        for (const life of slice(lives, at - 2 * perLoop, perLoop)) loop.change(life, life.settled);
      });
    }
    const elapsedMs = performance.now() - started;
    const singles = Array.from({ length: singleCommits }, () => lifeOfTask()).map((life) => {
      const begun = performance.now();
      loop.transaction(() => {
        loop.submit(life);
      });
      return performance.now() - begun;
    });
    singles.sort((left, right) => left - right);
    return {
      transitionsPerSecond: (tasks * 3 * 1_000) / elapsedMs,
      microsecondsPerTask: (elapsedMs * 1_000) / tasks,
      singleCommitP50Ms: quantile(singles, 0.5),
      singleCommitP99Ms: quantile(singles, 0.99),
    };
  } finally {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Loop {
  private nextOrder = 1;
  private nextSequence = 1;

  constructor(private readonly statements: WriteStatements) {}

  transaction(work: () => void): void {
    this.statements.begin.run();
    work();
    this.statements.commit.run();
  }

  submit(life: Life): void {
    const { admission, submitted } = life;
    life.order = this.nextOrder++;
    this.statements.takeKey.run(admission.namespace, admission.idempotencyKey, life.order);
    const { version, readyOrder: ready, nextDueAt: due, leaseSession, record, seal } = submitted;
    this.statements.insertTask.run(life.order, admission.taskId, version, 1, ready, due, leaseSession, record, seal);
    this.statements.insertAdmission.run(life.order, life.admissionText);
    this.append(life, submitted);
  }

  change(life: Life, rows: Rows): void {
    const { version, readyOrder: ready, nextDueAt: due, leaseSession, record, seal, base } = rows;
    this.statements.updateTask.run(version, ready, due, leaseSession, record, seal, life.order, base);
    this.append(life, rows);
  }

  private append(life: Life, { version, base, history, link }: Rows): void {
    this.statements.insertHistory.run(this.nextSequence, life.order, version, history, link);
    this.nextSequence += version - base;
  }
}

interface Rows {
  readonly base: number;
  readonly version: number;
  readonly readyOrder: number | null;
  readonly nextDueAt: number | null;
  readonly leaseSession: string | null;
  readonly record: string;
  readonly history: string;
  readonly link: Buffer;
  readonly seal: number;
}

interface Life {
  readonly admission: Admission;
  readonly admissionText: string;
  readonly submitted: Rows;
  readonly claimed: Rows;
  readonly settled: Rows;
  order: number;
}

const SESSION = uuid();
const CAUSE: Cause = {
  actor: { type: 'worker', id: 'worker-1' },
  principal: 'anonymous',
  source: 'stream',
  reason: null,
  causation: null,
  authoritativeAt: null,
};

function lifeOfTask(): Life {
  const now = Date.now();
  const admission = admissionAt(now);
  const submitted = Draft.admit(admission, uuid(), null, CAUSE);
  const claimed = Draft.of(submitted.record, now);
  const claim = { sessionId: SESSION, worker: 'worker-1', sessionTtlMs: 30_000, acceptTimeoutMs: 5_000 };
  judge(claimed, { kind: 'claim', ...claim, cause: CAUSE });
  const settled = Draft.of(claimed.record, now);
  const events = [
    { seq: 1, saying: { kind: 'accepted' } },
    { seq: 2, saying: { kind: 'started' } },
    { seq: 3, saying: { kind: 'completed', resultJson: '{"answer":42}', ending: null } },
  ] as const;
  const lease = { sessionId: SESSION, generation: 1, epoch: 1, answeredThrough: 0 };
  judgeReport(settled, { ...lease, events, chance: 0, cause: CAUSE });
  return {
    admission,
    admissionText: encodeAdmission(admission),
    submitted: rowsOf(submitted, 0),
    claimed: rowsOf(claimed, submitted.record.lastEvent),
    settled: rowsOf(settled, claimed.record.lastEvent),
    order: 0,
  };
}

function admissionAt(createdAt: number): Admission {
  const policy = resolvePolicy({});
  if (!policy.ok) throw new Error('the default policy is refused');
  return {
    taskId: uuid(),
    namespace: 'default',
    queue: 'default',
    idempotencyKey: uuid(),
    application: {
      actionKind: 'agent',
      argsJson: '{"input":"a few words of input for an agent"}',
      executionTarget: 'host',
      requiredCapabilities: [],
      libraryRef: null,
      libraryContentHash: null,
    },
    applicationHash: `sha256:${'0123456789abcdef'.repeat(4)}`,
    policy: policy.value,
    source: 'stream',
    scheduleId: null,
    actor: CAUSE.actor,
    principal: CAUSE.principal,
    traceContext: {},
    createdAt,
  };
}

function rowsOf(draft: Draft, base: number): Rows {
  const { record, events } = draft;
  return {
    base,
    version: record.lastEvent,
    ...indexOf(record),
    record: encodeRecord(record),
    history: encodeEvents(events),
    // Any 32 and 6 bytes: making links and seals is work of the service, as encoding is, and not of the ceiling.
    link: randomBytes(32),
    seal: randomBytes(6).readUIntBE(0, 6),
  };
}

function indexOf(record: TaskRecord): Pick<Rows, 'readyOrder' | 'nextDueAt' | 'leaseSession'> {
  return {
    readyOrder: readyOrder(record),
    nextDueAt: nextDueAt(record),
    leaseSession: record.lease?.sessionId ?? null,
  };
}

function slice<T>(items: readonly T[], from: number, count: number): readonly T[] {
  return items.slice(Math.max(from, 0), Math.max(from + count, 0));
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.table(rawLoop());
}
