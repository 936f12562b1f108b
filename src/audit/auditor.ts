/**
 * Auditing a store page by page while it lives: a finding is looked at again, in a fresh snapshot, before it is told, so
 * that what passes is not told. Reads only. Holds one page, whatever the store holds.
 */
import type { Authority } from '../authority/authority.js';
import type { AuditQuery, AuditedTask } from '../store/audit-rows.js';
import { type Finding, sameFinding } from './findings.js';
import { invariant } from './invariants.js';
import { type TaskAudit, auditTask } from './task-audit.js';

/** Before the second look, and before each further one at what passes by itself: a reaper has much to do at times. */
const LOOK_AGAIN_AFTER_MS: readonly number[] = [100, 1_000, 3_000];
/** Streams and leases come in between. */
const TASKS_PER_TURN = 16;
/** A page that is wrong everywhere ends early. */
const MAX_FINDINGS_PER_PAGE = 2_000;

type Order = number;

export interface AuditedPage {
  readonly tasks: number;
  readonly events: number;
  readonly links: number;
  readonly findings: readonly Finding[];
  /** Ids that no task has. */
  readonly unknown: readonly string[];
  readonly next: number | null;
}

export class Auditor {
  constructor(
    private readonly authority: Authority,
    private readonly quietSince: () => number,
  ) {}

  /** Throws StoreError. */
  async page(query: AuditQuery): Promise<AuditedPage> {
    const page = await this.authority.store.auditTasks(query);
    const unknown: string[] = [];
    const suspects = new Map<Order, readonly Finding[]>();
    let [tasks, events, links, found] = [0, 0, 0, 0];
    let { next } = page;
    for (const [index, task] of page.tasks.entries()) {
      if (index % TASKS_PER_TURN === TASKS_PER_TURN - 1) await turn();
      if (task === null) {
        unknown.push(query.taskIds?.[query.after + index] ?? '');
        continue;
      }
      const audit = await this.look(task);
      tasks += 1;
      events += audit.events;
      links += audit.links;
      if (audit.findings.length === 0) continue;
      suspects.set(task.order, audit.findings);
      found += audit.findings.length;
      if (found < MAX_FINDINGS_PER_PAGE || index === page.tasks.length - 1) continue;
      next = query.taskIds === null ? task.order : query.after + index + 1;
      break;
    }
    return { tasks, events, links, findings: await this.confirmed(suspects), unknown, next };
  }

  /** One task by its id, in one look: for whoever is about to mend it. Null: there is none. */
  async task(taskId: string): Promise<{ readonly task: AuditedTask; readonly audit: TaskAudit } | null> {
    const { tasks } = await this.authority.store.auditTasks({ taskIds: [taskId], after: 0, limit: 1 });
    const task = tasks[0] ?? null;
    return task === null ? null : { task, audit: await this.look(task) };
  }

  private look(task: AuditedTask): Promise<TaskAudit> {
    const { store } = this.authority;
    const moment = { now: this.authority.now(), quietSince: this.quietSince() };
    return auditTask(task, store.auditHistory.bind(store), moment);
  }

  /** Those of the findings that are still there, looked at until nothing among them may pass. */
  private async confirmed(suspects: Map<Order, readonly Finding[]>): Promise<readonly Finding[]> {
    for (const [index, delayMs] of LOOK_AGAIN_AFTER_MS.entries()) {
      const again = [...suspects].filter(([, findings]) => index === 0 || findings.some(mayPass));
      if (again.length === 0) break;
      await new Promise<void>((resolve) => this.authority.clock.after(delayMs, resolve));
      for (const [order, before] of again) {
        const left = await this.stillThere(order, before);
        if (left.length === 0) suspects.delete(order);
        else suspects.set(order, left);
      }
    }
    return [...suspects.values()].flat();
  }

  private async stillThere(order: Order, before: readonly Finding[]): Promise<readonly Finding[]> {
    const { tasks } = await this.authority.store.auditTasks({ taskIds: null, after: order - 1, limit: 1 });
    const task = tasks[0];
    // Purged meanwhile: then nothing is left that could be wrong.
    if (task?.order !== order) return [];
    const { findings } = await this.look(task);
    return findings.filter((finding) => before.some((known) => sameFinding(finding, known)));
  }
}

function mayPass({ invariant: name }: Finding): boolean {
  return invariant(name).passes === true;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
