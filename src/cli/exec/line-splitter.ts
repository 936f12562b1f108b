/**
 * Bytes into lines, in bounded memory: a line that grows too long is dropped as it comes, and told once when it ends.
 */

export type Line =
  { readonly kind: 'text'; readonly bytes: Buffer } | { readonly kind: 'too_long'; readonly size: number };

const NEWLINE = 0x0a;
const RETURN = 0x0d;

export class LineSplitter {
  private parts: Buffer[] = [];
  private size = 0;

  /** @param maxBytes the longest line that is kept, its end not counted. */
  constructor(private readonly maxBytes: number) {}

  /** The lines that this chunk completes. */
  push(chunk: Buffer): readonly Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.keep(chunk.subarray(from, end));
      lines.push(this.take());
      from = end + 1;
    }
    this.keep(chunk.subarray(from));
    return lines;
  }

  /** What stood after the last line end, if anything did. */
  end(): readonly Line[] {
    return this.size === 0 ? [] : [this.take()];
  }

  private keep(part: Buffer): void {
    this.size += part.length;
    if (this.size > this.maxBytes) this.parts = [];
    // A copy: the rest of the chunk would stay in memory with it.
    else if (part.length > 0) this.parts.push(Buffer.from(part));
  }

  private take(): Line {
    const { size, parts } = this;
    this.size = 0;
    this.parts = [];
    if (size > this.maxBytes) return { kind: 'too_long', size };
    const bytes = Buffer.concat(parts);
    return { kind: 'text', bytes: bytes.at(-1) === RETURN ? bytes.subarray(0, -1) : bytes };
  }
}
