/**
 * Lists of the work stream cut into frames: each as full as MAX_FRAME_BYTES allows, in order. An item that is larger
 * than a frame goes alone; what bounds single items stands with their codecs.
 */
import { MAX_FRAME_BYTES } from './frame-limits.js';

export function splitIntoFrames<Item>(
  items: readonly Item[],
  weightBytes: (item: Item) => number,
): readonly (readonly Item[])[] {
  const lists: Item[][] = [];
  let list: Item[] = [];
  let size = 0;
  for (const item of items) {
    const weight = weightBytes(item);
    if (list.length > 0 && size + weight > MAX_FRAME_BYTES) {
      lists.push(list);
      list = [];
      size = 0;
    }
    list.push(item);
    size += weight;
  }
  if (list.length > 0) lists.push(list);
  return lists;
}
