/**
 * Auditing a store page by page while it lives: what is kept of tasks first, then keys, sessions and permits. A finding is
 * looked at again, in a fresh snapshot and by its name, before it is told: what came meanwhile does not get between. Reads
 * only. Holds one page, whatever the store holds.
 */
import type { Authority } from '../authority/authority.js';
import type { Audited } from '../store/audit-rows.js';
import type { AuditCursor } from './audit-cursor.js';
import { type EntryAudit, auditEntry } from './entry-audit.js';
import type { Finding } from './findings.js';
import { NO_PERMITS, permitsOf } from '../kernel/permits.js';
import { auditKeys, auditSessions } from './lists.js';
import { auditPermits } from './permits.js';
import type { AuditMoment } from './standing.js';
import { type Suspect, confirmed } from './suspects.js';
import { type Tally, auditTally, beginTally, tallied } from './tally.js';
import { type TaskAudit, auditTask } from './task-audit.js';

/** Streams and leases come in between. */
const ENTRIES_PER_TURN = 16;
/** A page that is wrong everywhere ends early. */
const MAX_FINDINGS_PER_PAGE = 2_000;
/** Keys and sessions are short. */
const ROWS_PER_LIST = 1_000;

export interface AuditRequest {
  /** These tasks, or the whole store. */
  readonly taskIds: readonly string[] | null;
  /** Null: from the start. */
  readonly cursor: AuditCursor | null;
  /** Of tasks and what is left of them. */
  readonly limit: number;
}

/** How much was looked at. */
export interface AuditCounts {
  readonly tasks: number;
  readonly events: number;
  readonly links: number;
  readonly tombstones: number;
  readonly keys: number;
  readonly sessions: number;
  readonly permits: number;
}

export interface AuditedPage extends AuditCounts {
  readonly findings: readonly Finding[];
  /** Ids that no task has or had. */
  readonly unknown: readonly string[];
  readonly next: AuditCursor | null;
}

/** A page in the making. */
interface Page {
  readonly counts: Record<keyof AuditCounts, number>;
  readonly suspects: Suspect[];
  readonly unknown: string[];
}

export class Auditor {
  constructor(
    private readonly authority: Authority,
    private readonly quietSince: () => number,
  ) {}

  /** Throws StoreError. */
  async page(request: AuditRequest): Promise<AuditedPage> {
    const counts = { tasks: 0, events: 0, links: 0, tombstones: 0, keys: 0, sessions: 0, permits: 0 };
    const page: Page = { counts, suspects: [], unknown: [] };
    let next: AuditCursor | null = request.cursor ?? (await this.start(request));
    // Behind the last task the others follow in the same page, as far as they fit.
    for (let first = true; next !== null && (first || next.part !== 'tasks'); first = false) {
      const { part }: AuditCursor = next;
      next = await this.part(next, request, page);
      if (next?.part === part) break;
    }
    return { ...counts, findings: await confirmed(page.suspects, this.authority.clock), unknown: page.unknown, next };
  }

  /** One task or what is left of it by its id, in one look: for whoever is about to mend it. Null: there is none. */
  async entry(taskId: string): Promise<Audited | null> {
    const { entries } = await this.authority.store.auditTasks({ taskIds: [taskId], after: 0, limit: 1 });
    return entries[0] ?? null;
  }

  /** Everything that a repair of the task could mend, the permits that it needs among it. */
  async task(task: Extract<Audited, { kind: 'task' }>): Promise<TaskAudit> {
    const { store, permitRules } = this.authority;
    const audit = await auditTask(task, store.auditHistory.bind(store), this.moment());
    const { admission, taskId, permits } = task;
    const needs = admission.ok ? permitsOf(admission.value, permitRules) : NO_PERMITS;
    const names = new Set([...needs, ...permits].flatMap(({ name }) => name ?? []));
    if (names.size === 0) return audit;
    const found = await store.auditPermits({ names: [...names], after: null, limit: names.size });
    const findings = auditPermits(found.permits).map((finding) => ({ ...finding, taskId }));
    return { ...audit, findings: [...audit.findings, ...findings] };
  }

  private async start({ taskIds }: AuditRequest): Promise<AuditCursor> {
    const tally = taskIds === null ? beginTally(await this.authority.store.eventBounds()) : null;
    return { part: 'tasks', after: 0, tally };
  }

  private part(cursor: AuditCursor, request: AuditRequest, page: Page): Promise<AuditCursor | null> {
    switch (cursor.part) {
      case 'tasks':
        return this.entries(cursor, request, page);
      case 'keys':
        return this.keys(cursor.after, page);
      case 'sessions':
        return this.sessions(cursor.after, page);
      case 'permits':
        return this.permits(cursor.after, page);
    }
  }

  private async entries(
    { after, tally: before }: Extract<AuditCursor, { part: 'tasks' }>,
    { taskIds, limit }: AuditRequest,
    { counts, suspects, unknown }: Page,
  ): Promise<AuditCursor | null> {
    const { entries, next } = await this.authority.store.auditTasks({ taskIds, after, limit });
    let tally = before;
    let found = 0;
    for (const [index, entry] of entries.entries()) {
      if (index % ENTRIES_PER_TURN === ENTRIES_PER_TURN - 1) await turn();
      if (entry === null) {
        unknown.push(taskIds?.[after + index] ?? '');
        continue;
      }
      const { findings, events, links, lastSequence } = await this.look(entry);
      if (entry.kind === 'purged') counts.tombstones += 1;
      if (entry.kind === 'task') counts.tasks += 1;
      counts.events += events;
      counts.links += links;
      tally = tally && tallied(tally, entry, lastSequence);
      if (findings.length === 0) continue;
      suspects.push({ findings, again: () => this.againAt(entry.order) });
      found += findings.length;
      if (found < MAX_FINDINGS_PER_PAGE || index === entries.length - 1) continue;
      return { part: 'tasks', after: taskIds === null ? entry.order : after + index + 1, tally };
    }
    if (next !== null) return { part: 'tasks', after: next, tally };
    if (tally === null) return null;
    await this.sum(tally, suspects);
    return { part: 'keys', after: null };
  }

  private async sum(tally: Tally, suspects: Suspect[]): Promise<void> {
    const again = async (): Promise<readonly Finding[]> => auditTally(tally, await this.authority.store.eventBounds());
    const findings = await again();
    if (findings.length > 0) suspects.push({ findings, again });
  }

  private async keys(
    after: Extract<AuditCursor, { part: 'keys' }>['after'],
    { counts, suspects }: Page,
  ): Promise<AuditCursor> {
    const { store } = this.authority;
    const { keys, next } = await store.auditKeys({ names: null, after, limit: ROWS_PER_LIST });
    counts.keys += keys.length;
    const names = keys.filter((key) => auditKeys([key]).length > 0).map(({ name }) => name);
    const again = async (): Promise<readonly Finding[]> =>
      auditKeys((await store.auditKeys({ names, after: null, limit: names.length })).keys);
    if (names.length > 0) suspects.push({ findings: auditKeys(keys), again });
    return next === null ? { part: 'sessions', after: null } : { part: 'keys', after: next };
  }

  private async sessions(after: string | null, { counts, suspects }: Page): Promise<AuditCursor> {
    const { store } = this.authority;
    const { sessions, next } = await store.auditSessions({ names: null, after, limit: ROWS_PER_LIST });
    counts.sessions += sessions.length;
    const moment = this.moment();
    const ids = sessions.filter((one) => auditSessions([one], moment).length > 0).map(({ sessionId }) => sessionId);
    const again = async (): Promise<readonly Finding[]> =>
      auditSessions(
        (await store.auditSessions({ names: ids, after: null, limit: ids.length })).sessions,
        this.moment(),
      );
    if (ids.length > 0) suspects.push({ findings: auditSessions(sessions, moment), again });
    return next === null ? { part: 'permits', after: null } : { part: 'sessions', after: next };
  }

  private async permits(after: string | null, { counts, suspects }: Page): Promise<AuditCursor | null> {
    const { store } = this.authority;
    const { permits, next } = await store.auditPermits({ names: null, after, limit: ROWS_PER_LIST });
    counts.permits += permits.length;
    const names = permits.filter((permit) => auditPermits([permit]).length > 0).map(({ name }) => name);
    const again = async (): Promise<readonly Finding[]> =>
      auditPermits((await store.auditPermits({ names, after: null, limit: names.length })).permits);
    if (names.length > 0) suspects.push({ findings: auditPermits(permits), again });
    return next === null ? null : { part: 'permits', after: next };
  }

  private look(entry: Audited): Promise<EntryAudit> {
    const { store } = this.authority;
    return auditEntry(entry, store.auditHistory.bind(store), this.moment());
  }

  private moment(): AuditMoment {
    return { now: this.authority.now(), quietSince: this.quietSince() };
  }

  private async againAt(order: number): Promise<readonly Finding[]> {
    const { entries } = await this.authority.store.auditTasks({ taskIds: null, after: order - 1, limit: 1 });
    const entry = entries[0];
    return entry?.order === order ? (await this.look(entry)).findings : [];
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
