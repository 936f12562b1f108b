/**
 * One page of sessions out of however many there are: those that are wanted, behind where the last page stopped, the
 * first of them in the order in which they are shown. Keeps no more rows than a few pages hold.
 */
import type { SessionRow } from '../store/commit-plan.js';
import { type ListWorkersCommand, isWanted, placeOf } from '../wire/worker-session-codec.js';

/** So many pages are gathered before what lies behind the first is dropped: sorting costs little per row. */
const PAGES_GATHERED = 4;

export interface PlacedSession {
  readonly row: SessionRow;
  readonly place: string;
}

export class WorkerPage {
  private readonly byPlace = new Map<string, PlacedSession>();

  constructor(private readonly command: ListWorkersCommand) {}

  /** What is offered again takes the place of what was. */
  offer(row: SessionRow): void {
    if (!isWanted(row, this.command)) return;
    const place = placeOf(row);
    const { after, pageSize } = this.command;
    if (after !== null && place <= after) return;
    this.byPlace.set(place, { row, place });
    if (this.byPlace.size > (pageSize + 1) * PAGES_GATHERED) this.trim();
  }

  /** One more than the page holds, if there are more. */
  inOrder(): readonly PlacedSession[] {
    return this.sorted().slice(0, this.command.pageSize + 1);
  }

  private trim(): void {
    for (const { place } of this.sorted().slice(this.command.pageSize + 1)) this.byPlace.delete(place);
  }

  private sorted(): PlacedSession[] {
    return [...this.byPlace.values()].sort((left, right) => (left.place < right.place ? -1 : 1));
  }
}
