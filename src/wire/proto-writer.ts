/**
 * Protobuf written by hand for the few messages that are sent tens of thousands of times a second: several times
 * cheaper than building a message object and encoding it by reflection (bench/wire-codecs.ts measures it).
 * Owns the encoding of scalars, strings and nested messages; which field has which number is its callers' to know, and
 * their tests compare every message with the generated codec's. Fields with a default value are to be left out.
 */

const INITIAL_BYTES = 16_384;
/** Beyond this a string is handed to the platform's encoder. */
const SHORT_STRING = 128;
const VARINT = 0;
const LENGTH_DELIMITED = 2;

export class ProtoWriter {
  private buffer = Buffer.allocUnsafe(INITIAL_BYTES);
  private at = 0;

  /** Bytes written so far. */
  get length(): number {
    return this.at;
  }

  /** What was written, copied; the writer is empty again and keeps its buffer. */
  take(): Uint8Array {
    const bytes = Uint8Array.prototype.slice.call(this.buffer, 0, this.at);
    this.at = 0;
    return bytes;
  }

  /** A string field that is not empty. */
  string(field: number, value: string): void {
    if (value === '') return;
    this.tag(field, LENGTH_DELIMITED);
    const { length } = value;
    this.reserve(length * 3 + 5);
    if (length < SHORT_STRING && this.ascii(value, length)) return;
    const start = this.at;
    const size = this.buffer.write(value, start + 5, 'utf8');
    this.varint(size);
    this.buffer.copyWithin(this.at, start + 5, start + 5 + size);
    this.at += size;
  }

  /** An integer field of 0 to 2^53 − 1 that is not 0. */
  integer(field: number, value: number): void {
    if (value === 0) return;
    this.tag(field, VARINT);
    this.varint(value);
  }

  bytes(field: number, value: Uint8Array): void {
    this.tag(field, LENGTH_DELIMITED);
    this.reserve(value.length + 5);
    this.varint(value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
  }

  /** Begins a nested message; the answer goes to `end`. */
  begin(field: number): number {
    this.tag(field, LENGTH_DELIMITED);
    this.reserve(1);
    this.at += 1;
    return this.at;
  }

  /** Ends the nested message begun at `start`. Its length was given one byte; a longer one moves the content. */
  end(start: number): void {
    const size = this.at - start;
    if (size < 0x80) {
      this.buffer[start - 1] = size;
      return;
    }
    const more = size < 0x4000 ? 1 : size < 0x20_0000 ? 2 : 3;
    this.reserve(more);
    this.buffer.copyWithin(start + more, start, this.at);
    this.at = start - 1;
    this.varint(size);
    this.at += size;
  }

  private tag(field: number, wireType: number): void {
    this.reserve(2);
    this.varint((field << 3) | wireType);
  }

  /** Room must be reserved: 8 bytes at most. */
  private varint(value: number): void {
    this.reserve(8);
    const { buffer } = this;
    let rest = value;
    let at = this.at;
    while (rest >= 0x80) {
      // Bit operations are for 32 bits; a sequence has up to 53.
      buffer[at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    buffer[at++] = rest;
    this.at = at;
  }

  /** Length and characters of a string below SHORT_STRING if it is ASCII; false and nothing written otherwise. */
  private ascii(value: string, length: number): boolean {
    const { buffer } = this;
    let at = this.at;
    buffer[at++] = length;
    for (let index = 0; index < length; index += 1) {
      const unit = value.charCodeAt(index);
      if (unit > 0x7f) return false;
      buffer[at++] = unit;
    }
    this.at = at;
    return true;
  }

  private reserve(more: number): void {
    if (this.at + more <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + more));
    this.buffer.copy(larger, 0, 0, this.at);
    this.buffer = larger;
  }
}
