/**
 * How far the events of a claim that is long over were judged (lifecycle.md section 7): the record keeps the marks of
 * its last two claims, the history those of older ones. Read only for who proved that the claim was its own; it never
 * decides anything, and a number that a refused event used up is not in the history.
 */
import type { Authority } from '../authority/authority.js';
import type { Read } from '../authority/task-reader.js';

const PAGE = 500;
const PAGE_BYTES = 1_048_576;

/** The highest `event_seq` of that epoch in the history; 0 when there is none. */
export async function answeredInHistory(authority: Authority, taskId: string, epoch: number): Promise<Read<number>> {
  let mark = 0;
  for (let after = 0; ;) {
    const page = await authority.reads.history(taskId, after, PAGE, PAGE_BYTES);
    if (!page.ok) return page;
    for (const { event } of page.value) {
      // Epochs only grow.
      if ((event.epoch ?? 0) > epoch) return { ok: true, value: mark };
      if (event.epoch === epoch) mark = Math.max(mark, event.workerSeq ?? 0);
    }
    const last = page.value[page.value.length - 1];
    if (last === undefined) return { ok: true, value: mark };
    after = last.event.number;
  }
}
