/**
 * The committer: group commit. While one batch is being synced the next gathers; every batch is judged on what the
 * one before left, written in one transaction and answered only after it (architecture.md, promises C1 and C10).
 * It must never answer before the commit, write while an earlier outcome is unknown, or let one work stop the others.
 */
import { readyOrder } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { Clock } from '../lib/clock.js';
import { type CommitBatch, MAX_PLANS_PER_BATCH, type PlanVerdict } from '../store/commit-plan.js';
import { StoreError } from '../store/store-error.js';
import type { TaskStore } from '../store/task-store.js';
import { Batch } from './batch.js';
import { BatchRecords } from './batch-records.js';
import { type ClaimSource, NO_CLAIMS } from './claim-source.js';
import { ClaimWork } from './claim-work.js';
import { commitBatch } from './commit-outcome.js';
import { DamageReports } from './damage-reports.js';
import { FollowWork } from './follow-work.js';
import { tellFollowers } from './followers.js';
import { type IndexRules, isReady } from './placement-index.js';
import { PermitRooms } from './permit-rooms.js';
import type { Publisher } from './publisher.js';
import type { RecordCache } from './record-cache.js';
import { commitRefusal, contention, storeRefusal, storeUnavailable, writeDamaged } from './store-refusal.js';
import { AlignWork, PermitStepWork, UnsettledPermits } from './permit-work.js';
import type { Unit } from './unit.js';
import { type Waiting, WaitingWorks, overloaded } from './waiting-works.js';
import { MAX_JUDGEMENTS, type Work } from './work.js';

/** Records read for claims before they are judged, and how much of them one batch takes in. */
const CLAIMS_PER_LOAD = 128;
const MAX_CLAIM_BYTES = 16 * 1024 * 1024;

export interface CommitterOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly cache: RecordCache;
  readonly publisher: Publisher;
  readonly newBatchId: () => string;
  readonly acceptTimeoutMs: number;
  readonly rules: IndexRules;
  /** A defect or a store that must not be used any more; the process is expected to end. */
  readonly onFatal: (error: unknown) => void;
  readonly onDefect: (error: unknown) => void;
  /** The store did not answer, or answers again. */
  readonly onOutage: () => void;
}

export class Committer {
  readonly damage: DamageReports;
  private readonly works = new WaitingWorks();
  private running = false;
  private claimsWanted = false;
  private stopped = false;
  /** After a fatal failure: the store is not called again. */
  private ended = false;
  private claims: ClaimSource = NO_CLAIMS;
  private readonly unsettled: UnsettledPermits;
  private readonly rooms: PermitRooms;
  private building = false;
  private deferred: (() => void)[] = [];
  private idle: (() => void)[] = [];

  constructor(private readonly options: CommitterOptions) {
    this.unsettled = new UnsettledPermits(options.rules.permitLimit);
    this.rooms = new PermitRooms(options.rules.permitLimit);
    this.damage = new DamageReports(options.clock, options.onDefect);
  }

  useClaims(source: ClaimSource): void {
    this.claims = source;
  }

  /** Queues a work. It is answered through its own callbacks, exactly once. */
  enqueue(work: Work): void {
    if (this.ended) return this.refuse(work, storeUnavailable());
    if (this.stopped) return this.refuse(work, refuse('DRAINING', 'the service is stopping; retry with the same key'));
    if (!this.works.hasRoomFor(work) && work.essential !== true) return this.refuse(work, overloaded());
    this.works.add(work, 0);
    this.wake();
  }

  /** There may be pairings to claim though nothing else happened: credit came back, or a window was filled. */
  wakeForClaims(): void {
    this.claimsWanted = true;
    this.wake();
  }

  /**
   * Runs `read` so that it sees everything judged so far: at once between batches, otherwise as soon as the commit of
   * the batch in the making was begun.
   */
  readBehindBatch(read: () => void): void {
    if (this.building) this.deferred.push(read);
    else read();
  }

  /** Refuses new works and resolves once everything queued before is answered. */
  async stop(): Promise<void> {
    this.stopped = true;
    if (!this.running) return;
    await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private wake(): void {
    if (this.running) return;
    this.running = true;
    // After the I/O of this turn, so that what arrived together is committed together.
    setImmediate(() => void this.run());
  }

  private async run(): Promise<void> {
    try {
      while (!this.ended && (!this.works.isEmpty || (this.claimsWanted && !this.stopped))) {
        this.claimsWanted = false;
        await this.runBatch(this.works.take());
      }
    } catch (error) {
      this.ended = true;
      this.refuseWaiting(storeUnavailable());
      this.options.onFatal(error);
    } finally {
      this.running = false;
      for (const resolve of this.idle.splice(0)) resolve();
    }
  }

  private async runBatch(taken: readonly Waiting[]): Promise<void> {
    this.building = true;
    try {
      await this.buildAndCommit(taken);
    } finally {
      this.endBuilding();
      this.rooms.batchOver();
      this.claims.batchOver();
    }
  }

  /** The commit of the batch was begun, or there will be none: what was to be read behind it is read now. */
  private endBuilding(): void {
    this.building = false;
    for (const read of this.deferred.splice(0)) read();
  }

  private async buildAndCommit(taken: readonly Waiting[]): Promise<void> {
    const judgements = new Map(taken.map((waiting) => [waiting.work, waiting.judgements]));
    const records = new BatchRecords(this.options.store, this.options.cache, this.damage);
    const spoiled = new Set<Work>();
    try {
      await this.prefetch(taken, records, spoiled);
    } catch (error) {
      const refusal = this.readFailed(error);
      for (const { work } of taken) if (!spoiled.has(work)) this.refuse(work, refusal);
      if (error instanceof StoreError && error.failure === 'fatal') throw error;
      return;
    }
    const batch = new Batch(
      this.options.clock.nowMs(),
      (taskId) => records.get(taskId),
      (taskId) => records.liveChildren(taskId),
      this.options.rules,
    );
    for (const { work } of taken) if (!spoiled.has(work)) this.judge(work, batch, judgements);
    await this.tellFollowers(batch, records, judgements);
    await this.claim(batch, records, judgements);
    this.works.putPostponedFirst();
    await this.commit(batch, judgements);
  }

  /** Loads the records that the works need and the cache lacks, and what else they ask for. */
  private async prefetch(taken: readonly Waiting[], records: BatchRecords, spoiled: Set<Work>): Promise<void> {
    const others: Promise<void>[] = [];
    for (const { work } of taken) {
      if (work.taskId !== null) records.need(work.taskId);
      if (work.alsoNeeds !== undefined) for (const taskId of work.alsoNeeds) records.need(taskId);
      if (work.prefetch !== undefined) others.push(this.prefetchOf(work, spoiled));
    }
    await Promise.all([records.load(), ...others]);
  }

  /** Throws only what concerns the whole store; what else goes wrong spoils this work alone. */
  private async prefetchOf(work: Work, spoiled: Set<Work>): Promise<void> {
    try {
      await work.prefetch?.();
    } catch (error) {
      if (error instanceof StoreError && error.failure !== 'damaged') throw error;
      if (!(error instanceof StoreError)) this.options.onDefect(error);
      spoiled.add(work);
      this.refuse(work, storeRefusal(error, work.taskId));
    }
  }

  /** What those are told who wait for a read that failed. */
  private readFailed(error: unknown): Refusal {
    if (error instanceof StoreError) this.options.onOutage();
    else this.options.onDefect(error);
    return storeRefusal(error);
  }

  private judge(work: Work, batch: Batch, judgements: ReadonlyMap<Work, number>): void {
    try {
      const sealed = work.taskId !== null && batch.isSealed(work.taskId);
      if (sealed || work.judge(batch) === 'later') this.works.postpone(work, judgements.get(work) ?? 0);
    } catch (error) {
      // A defect in one rule must not stop the others; what it left behind in a draft is not trusted.
      this.options.onDefect(error);
      this.refuse(work, refuse('INTERNAL', 'an invariant was broken; nothing was changed'));
      if (work.taskId === null) return;
      batch.discard(work.taskId, (other) => {
        if (other !== work) this.again(other, judgements);
      });
    }
  }

  /** Followers of what ended are judged into the same transaction; what fails here the propagation makes good. */
  private async tellFollowers(
    batch: Batch,
    records: BatchRecords,
    judgements: ReadonlyMap<Work, number>,
  ): Promise<void> {
    try {
      await tellFollowers(batch, records, this.options.store, (follow) => {
        this.judge(new FollowWork(follow, () => undefined), batch, judgements);
      });
    } catch (error) {
      this.readFailed(error);
    }
  }

  /** Pairs what became ready, in this batch or before, with free slots; the claims join the same transaction. */
  private async claim(batch: Batch, records: BatchRecords, judgements: Map<Work, number>): Promise<void> {
    if (this.stopped) return;
    for (const unit of batch.units) {
      if (unit.kind !== 'record' || unit.draft.events.length === 0) continue;
      const { record } = unit.draft;
      // Whether a task that needs permits is ready, only the commit tells.
      if (readyOrder(record) !== null && batch.rules.permitsOf(record.admission).length === 0)
        this.claims.offer(record);
    }
    let room = MAX_PLANS_PER_BATCH - batch.units.length;
    while (room > 0) {
      const works = this.pair(batch, records, room);
      if (works.length === 0) return;
      room -= works.length;
      try {
        await records.load();
      } catch (error) {
        const refusal = this.readFailed(error);
        for (const work of works) this.refuse(work, refusal);
        return;
      }
      for (const work of works) {
        judgements.set(work, 0);
        this.judge(work, batch, judgements);
      }
      if (records.loadedBytes > MAX_CLAIM_BYTES) break;
    }
    this.claimsWanted = true;
  }

  /** The next pairings, as many as there is room for and as are worth one read of records. */
  private pair(batch: Batch, records: BatchRecords, room: number): readonly ClaimWork[] {
    const works: ClaimWork[] = [];
    const { acceptTimeoutMs } = this.options;
    while (works.length < room && records.missingCount < CLAIMS_PER_LOAD) {
      const assignment = this.claims.next();
      if (assignment === null) break;
      works.push(new ClaimWork(assignment, this.claims, acceptTimeoutMs, this.rooms, this.misplaced));
      if (batch.unitOf(assignment.taskId) === undefined) records.need(assignment.taskId);
    }
    return works;
  }

  private async commit(batch: Batch, judgements: ReadonlyMap<Work, number>): Promise<void> {
    const planned: Unit[] = [];
    const plans = [];
    for (const unit of batch.inOrder()) {
      const plan = unit.plan(batch.rules);
      if (plan === null) {
        for (const { onCommitted } of unit.answers) this.guarded(() => onCommitted(null));
        continue;
      }
      planned.push(unit);
      plans.push(plan);
    }
    if (plans.length === 0) return;
    const commit: CommitBatch = { batchId: this.options.newBatchId(), plans };
    const { store, clock, onOutage } = this.options;
    const committing = commitBatch(store, clock, commit, onOutage, (refusal) => {
      // The outcome may stay unknown for long: the callers are told so, and nothing else is written meanwhile.
      for (const unit of planned) for (const work of unit.impatient()) this.refuse(work, refusal);
      this.refuseWaiting(storeUnavailable());
    });
    this.endBuilding();
    const outcome = await committing;
    if (outcome.kind === 'failed') {
      const refusal = commitRefusal(outcome.error);
      for (const unit of planned) {
        this.forget(unit);
        for (const { work } of unit.answers) this.refuse(work, refusal);
      }
      if (outcome.error.failure === 'fatal') throw outcome.error;
      return;
    }
    planned.forEach((unit, index) => {
      const verdict = outcome.verdicts[index];
      if (verdict !== undefined) this.settle(unit, verdict, judgements);
    });
  }

  private settle(unit: Unit, verdict: PlanVerdict, judgements: ReadonlyMap<Work, number>): void {
    if (verdict.kind === 'committed') {
      const commit = unit.kind === 'record' || unit.kind === 'repair' ? unit.committed(verdict) : null;
      if (commit !== null) {
        if (unit.kind === 'repair') this.mended(commit.record);
        else this.options.cache.committed(commit.record);
        this.options.publisher.publish(commit);
      }
      for (const room of verdict.rooms ?? []) this.rooms.tell(room);
      for (const unready of verdict.unready ?? []) this.claims.withdraw(unready);
      for (const ready of verdict.ready ?? []) this.claims.offerReady(ready);
      if (verdict.ready !== undefined) this.claimsWanted = true;
      for (const { onCommitted } of unit.answers) this.guarded(() => onCommitted(commit));
      this.unsettled.note(verdict.unsettled ?? []);
      for (const step of this.unsettled.steps()) this.works.add(step, 0);
      return;
    }
    this.forget(unit);
    if (verdict.kind === 'conflict' && verdict.subject === 'record') {
      this.damage.doubt(verdict.id);
      this.options.cache.drop(verdict.id);
    }
    if (verdict.kind === 'damaged') {
      this.options.onDefect(new StoreError('damaged', verdict.detail));
      for (const { work } of unit.answers) this.refuse(work, writeDamaged(work.taskId));
      return;
    }
    for (const { work } of unit.answers) {
      this.guarded(() => {
        if (work.lost(verdict) === 'retry') this.again(work, judgements);
      });
    }
  }

  /** The ready index has a task that cannot be claimed: it is put where it belongs, so that others come to their turn. */
  private readonly misplaced = (taskId: string, why: 'waits' | 'damaged'): void => {
    const ignored = (): void => undefined;
    const aside = { kind: 'aside', taskId } as const;
    this.works.add(why === 'waits' ? new AlignWork(taskId, ignored) : new PermitStepWork(aside, ignored), 0);
  };

  /**
   * What a repair was decided on has no args: the record is read anew. Until its commit a damaged task could not be
   * claimed, so it is offered only now.
   */
  private mended(record: TaskRecord): void {
    const { taskId } = record.admission;
    this.damage.mended(taskId);
    this.options.cache.overtaken(taskId);
    if (!isReady(record, this.options.rules)) return;
    this.claims.offer(record);
    this.claimsWanted = true;
  }

  /** Once more, in a later batch; not for ever. */
  private again(work: Work, judgements: ReadonlyMap<Work, number>): void {
    const judged = (judgements.get(work) ?? 0) + 1;
    if (judged < MAX_JUDGEMENTS) return this.works.add(work, judged);
    this.refuse(work, contention());
  }

  private forget(unit: Unit): void {
    if (unit.kind === 'record' && unit.base !== null) this.options.cache.drop(unit.base.admission.taskId);
  }

  private refuseWaiting(refusal: Refusal): void {
    for (const { work } of this.works.takeAll()) this.refuse(work, refusal);
  }

  private refuse(work: Work, refusal: Refusal): void {
    this.guarded(() => work.refuse(refusal));
  }

  /** A work that fails at being told must not keep the others from it. */
  private guarded(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.options.onDefect(error);
    }
  }
}
