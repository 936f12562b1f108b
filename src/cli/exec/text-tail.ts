/**
 * The last bytes of a stream, as text: what a program said before it failed.
 */
export class TextTail {
  private chunks: Buffer[] = [];
  private size = 0;
  private dropped = false;

  constructor(private readonly maxBytes: number) {}

  push(chunk: Buffer): void {
    this.chunks.push(Buffer.from(chunk.subarray(-this.maxBytes)));
    this.size += Math.min(chunk.length, this.maxBytes);
    this.dropped ||= chunk.length > this.maxBytes;
    // Joined now and then, not with every chunk: a chatty program writes a few bytes at a time.
    if (this.size > 2 * this.maxBytes || this.chunks.length > 1_024) this.compact();
  }

  /** At most `maxBytes`, never beginning inside a character; bytes that are no UTF-8 show as U+FFFD. */
  text(): string {
    this.compact();
    const bytes = this.chunks[0] ?? Buffer.alloc(0);
    let from = 0;
    while (this.dropped && from < Math.min(3, bytes.length) && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    return bytes.subarray(from).toString('utf8');
  }

  private compact(): void {
    const all = Buffer.concat(this.chunks);
    this.dropped ||= all.length > this.maxBytes;
    const kept = Buffer.from(all.subarray(-this.maxBytes));
    this.chunks = [kept];
    this.size = kept.length;
  }
}
