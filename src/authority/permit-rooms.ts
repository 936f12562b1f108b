/**
 * How many claims of one permit are worth making in one batch: as many as may begin with it, as the last commit said that
 * concerned it. Tasks of many routes may be ready for one place, and of those that are claimed together all but one would
 * lose. A hint: the commit alone decides, and what nothing is known of is taken to be free.
 */
import type { Permits } from '../kernel/permits.js';
import type { PermitRoom } from '../store/permit-rows.js';

export class PermitRooms {
  /** By name, of the permits that somebody runs with: the others are free. */
  private readonly rooms = new Map<string, number>();
  /** By name, the claims of the batch in the making. */
  private readonly taken = new Map<string, number>();

  constructor(private readonly limitOf: (name: string) => number | null) {}

  tell({ name, room }: PermitRoom): void {
    if (room >= (this.limitOf(name) ?? 0)) this.rooms.delete(name);
    else this.rooms.set(name, room);
  }

  /** One may always be tried: should the hint be wrong, its commit says so. */
  has(needs: Permits): boolean {
    return needs.every(({ name, limit }) => {
      const room = Math.max(this.rooms.get(name) ?? limit, 1);
      return (this.taken.get(name) ?? 0) < room;
    });
  }

  take(needs: Permits): void {
    for (const { name } of needs) this.taken.set(name, (this.taken.get(name) ?? 0) + 1);
  }

  batchOver(): void {
    this.taken.clear();
  }
}
