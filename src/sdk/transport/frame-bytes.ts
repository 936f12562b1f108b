/**
 * Frames put together from items that are already encoded, so that an item is encoded once, its size is exact, and
 * sending it again costs a copy. Knows only the shape `{ frame id, repeated item }`, flat or one message deeper.
 */

/** Hard limit of a frame by the contract: 1.5 MiB. The rest is room for the frame's own header. */
export const MAX_FRAME_BYTES = 1.5 * 1024 * 1024 - 1024;

const LENGTH_DELIMITED = 2;

export interface FrameShape {
  /** Number of the field that holds the frame id, a varint. */
  readonly frameIdField: number;
  /** Number of the message field that wraps the list; null when the list is in the frame itself. */
  readonly wrapperField: number | null;
  /** Number of the repeated message field. */
  readonly itemField: number;
}

/** Bytes that an item takes in a frame. */
export function sizeInFrame(itemBytes: number): number {
  // Field numbers below 16 take one byte.
  return 1 + varintSize(itemBytes) + itemBytes;
}

/** @param frameId null: without one; whoever sends it adds it with `withFrameId`. */
export function encodeFrame(shape: FrameShape, frameId: number | null, items: readonly Uint8Array[]): Buffer {
  let listBytes = 0;
  for (const item of items) listBytes += sizeInFrame(item.length);
  const idBytes = frameId === null ? 0 : 1 + varintSize(frameId);
  const wrapperBytes = shape.wrapperField === null ? 0 : 1 + varintSize(listBytes);
  const frame = Buffer.allocUnsafe(idBytes + wrapperBytes + listBytes);
  let at = frameId === null ? 0 : writeFrameId(frame, shape.frameIdField, frameId);
  if (shape.wrapperField !== null) at = writeHead(frame, at, shape.wrapperField, listBytes);
  for (const item of items) {
    at = writeHead(frame, at, shape.itemField, item.length);
    frame.set(item, at);
    at += item.length;
  }
  return frame;
}

/** The same frame with its id in front: the order of fields says nothing. */
export function withFrameId(frameIdField: number, frameId: number, rest: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(1 + varintSize(frameId) + rest.length);
  frame.set(rest, writeFrameId(frame, frameIdField, frameId));
  return frame;
}

function writeFrameId(frame: Buffer, field: number, frameId: number): number {
  frame[0] = field << 3;
  return writeVarint(frame, 1, frameId);
}

function writeHead(frame: Buffer, at: number, field: number, length: number): number {
  frame[at] = (field << 3) | LENGTH_DELIMITED;
  return writeVarint(frame, at + 1, length);
}

/** `value` is a non-negative safe integer. */
function writeVarint(frame: Buffer, at: number, value: number): number {
  let rest = value;
  while (rest >= 0x80) {
    frame[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  frame[at] = rest;
  return at + 1;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}
