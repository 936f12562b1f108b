/**
 * The record cache: live records by task id, least recently used out first, bounded in weight.
 * A stale entry is harmless: every write checks the version of what it was decided on. It never holds a record
 * that was not committed.
 */
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';

/** What a cached record counts besides its args: about what V8 holds for it. */
const RECORD_WEIGHT_BYTES = 2_048;

/** A read of the store, from before it is asked until its answer is used. */
export interface CacheRead {
  /** Keeps the record unless a commit overtook it: its task may have ended since, and so have left the cache. */
  keep(record: TaskRecord): void;
  end(): void;
}

export class RecordCache {
  private readonly records = new Map<string, TaskRecord>();
  private weightBytes = 0;
  /** For each read of the store under way the tasks that were committed since it began. */
  private readonly reads = new Set<Set<string>>();

  constructor(private readonly maxWeightBytes: number) {}

  get(taskId: string): TaskRecord | undefined {
    const record = this.records.get(taskId);
    if (record === undefined) return undefined;
    // Re-inserting moves it to the young end of the map's order.
    this.records.delete(taskId);
    this.records.set(taskId, record);
    return record;
  }

  /** What was committed: it also overtakes whatever reads of the store are under way. */
  committed(record: TaskRecord): void {
    for (const overtaken of this.reads) overtaken.add(record.admission.taskId);
    this.offer(record);
  }

  /** What is stored was changed, and is to be read anew. */
  overtaken(taskId: string): void {
    for (const overtaken of this.reads) overtaken.add(taskId);
    this.drop(taskId);
  }

  /** Begins a read of the store whose records may be kept. */
  beginRead(): CacheRead {
    const overtaken = new Set<string>();
    this.reads.add(overtaken);
    return {
      keep: (record) => {
        if (!overtaken.has(record.admission.taskId)) this.offer(record);
      },
      end: () => void this.reads.delete(overtaken),
    };
  }

  /** Keeps the newer of what is there and what is given; a terminal record is let go, it is read seldom. */
  private offer(record: TaskRecord): void {
    const { taskId } = record.admission;
    const known = this.records.get(taskId);
    if (known !== undefined && known.lastEvent > record.lastEvent) return;
    this.drop(taskId);
    if (isTerminal(record.status)) return;
    this.records.set(taskId, record);
    this.weightBytes += weightOf(record);
    if (this.weightBytes > this.maxWeightBytes) this.evict();
  }

  drop(taskId: string): void {
    const record = this.records.get(taskId);
    if (record === undefined) return;
    this.records.delete(taskId);
    this.weightBytes -= weightOf(record);
  }

  private evict(): void {
    for (const taskId of this.records.keys()) {
      if (this.weightBytes <= this.maxWeightBytes) return;
      this.drop(taskId);
    }
  }
}

function weightOf(record: TaskRecord): number {
  return RECORD_WEIGHT_BYTES + 2 * record.admission.application.argsJson.length;
}
