/**
 * The lifecycle as the history tells it: edges, ends, epochs, attempts, the fence and the AEP projection (quality.md,
 * invariants 4, 7, 8, 11 and 20). It counts once more what the fold counts, from the events alone.
 */
import { type AepState, isLegalAep } from '../kernel/aep.js';
import { isDeclaredEdge } from '../kernel/edges.js';
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import { type TaskStatus, isTerminal } from '../kernel/status.js';
import type { EventCheck } from './event-check.js';
import type { Findings } from './findings.js';
import type { End, Ends } from './propagations.js';

export class Lifecycle implements EventCheck {
  private status: TaskStatus | null = null;
  private generation = 0;
  private epoch = 0;
  /** The epoch that runs; null when none does. */
  private running: number | null = null;
  private cancelRequested = false;
  private aep: AepState | null = null;
  private attempts = 0;
  /** False while what came before is not known. */
  private known = true;

  private readonly ended = new Map<number, End>();

  /** `inQuestion`: the generations of which it is to be told how they ended. */
  constructor(
    private readonly findings: Findings,
    private readonly inQuestion: ReadonlySet<number> = new Set(),
  ) {}

  get ends(): Ends {
    return this.ended;
  }

  /** Claims of the last generation less those given back; null when it is not known. */
  get countedAttempts(): number | null {
    return this.known ? this.attempts : null;
  }

  see(event: TaskEvent): void {
    if (!this.known || event.type === 'reeve.task.repaired') return;
    this.generations(event);
    this.edges(event);
    this.epochs(event);
    this.projection(event);
    if (event.type === 'task.cancel.requested') this.cancelRequested = true;
    if (event.to === null) return;
    this.status = event.to;
    const { generation, number: eventNumber } = event;
    if (isTerminal(event.to) && this.inQuestion.has(generation))
      this.ended.set(generation, { status: event.to, eventNumber });
  }

  lost(): void {
    this.known = false;
  }

  restart(_event: TaskEvent, _sequence: number, record: TaskRecord): void {
    const { status, generation, epoch, lease, cancellation, aep, attempt } = record;
    const running = lease?.epoch ?? null;
    Object.assign(this, { status, generation, epoch, running, aep, attempts: attempt, known: true });
    this.cancelRequested = cancellation !== null;
  }

  private generations(event: TaskEvent): void {
    const begins = event.type === 'reeve.task.generation_started' || event.type === 'task.submitted';
    if (event.generation !== this.generation + (begins ? 1 : 0)) {
      const detail = `generation ${event.generation} in generation ${this.generation}`;
      this.findings.add('history.terminal', detail, event.number);
    } else if (!begins && this.status !== null && isTerminal(this.status)) {
      this.findings.add('history.terminal', `${event.type} after ${this.status}`, event.number);
    }
    if (!begins) return;
    this.generation = event.generation;
    this.cancelRequested = false;
    this.attempts = 0;
  }

  private edges({ from, to, number }: TaskEvent): void {
    if (to === null) return;
    if (from !== this.status) {
      this.findings.add('history.edges', `from ${from ?? 'nothing'} where it was ${this.status ?? 'nothing'}`, number);
    } else if (!isDeclaredEdge(from, to)) {
      this.findings.add('history.edges', `${from ?? 'nothing'} to ${to} is not declared`, number);
    }
  }

  private epochs(event: TaskEvent): void {
    const { number, epoch } = event;
    if (event.type === 'reeve.task.claimed') {
      if (this.cancelRequested) this.findings.add('history.fence', 'claimed after a cancel request', number);
      if (epoch === null || epoch <= this.epoch) {
        this.findings.add('history.epochs', `epoch ${epoch ?? 'none'} follows ${this.epoch}`, number);
      }
      this.epoch = epoch ?? this.epoch;
      this.running = this.epoch;
      this.attempts += 1;
      return;
    }
    if (epoch !== null && epoch !== this.running) {
      const detail = `${event.type} in epoch ${epoch} while ${this.running ?? 'none'} runs`;
      this.findings.add('history.settlements', detail, number);
    }
    if (event.from === 'running' && event.to !== 'running') {
      if (this.running === null) this.findings.add('history.settlements', 'the epoch has ended before', number);
      this.running = null;
    }
    if (event.type === 'reeve.task.retry_scheduled' && event.data.attemptGivenBack) this.attempts -= 1;
    if (event.type === 'reeve.task.suspended' && event.data.byHolder) this.attempts -= 1;
  }

  private projection({ aep, type, number }: TaskEvent): void {
    if (aep === null) return;
    const begins = type === 'task.submitted' || type === 'reeve.task.generation_started';
    const legal = begins ? aep === 'submitted' : this.aep !== null && isLegalAep(this.aep, aep);
    if (!legal) this.findings.add('history.projection', `${aep} follows ${this.aep ?? 'nothing'}`, number);
    this.aep = aep;
  }
}
