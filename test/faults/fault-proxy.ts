// A TCP proxy that does to connections what networks do, when a test says so: delay, loss in one or both directions
// without a word, FIN, RST, an end after so many bytes, connections that nobody accepts. Knows nothing of what it
// carries. What is done to connections is done to those that are open; later ones are whole again.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Flow } from './fault-flow.js';

/** `up`: from the client to the server. */
export type Direction = 'up' | 'down';
export type Ending = 'cut' | 'reset';

interface Limit {
  readonly direction: Direction;
  readonly then: Ending;
  bytesLeft: number;
}

export class FaultProxy {
  /** Connections that were ever made through it. */
  connections = 0;
  /** Bytes that went through, per direction. */
  readonly bytes = { up: 0, down: 0 };
  private readonly links = new Set<Link>();
  private readonly waiting: Socket[] = [];
  private readonly delaysMs = { up: 0, down: 0 };
  private limit: Limit | null = null;
  private accepting = true;

  private constructor(
    private readonly server: Server,
    private readonly target: () => string,
  ) {
    server.on('connection', (socket) => this.accept(socket));
  }

  /** `target` is asked for every connection, because a server may come back on another port. */
  static async start(target: string | (() => string)): Promise<FaultProxy> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FaultProxy(server, typeof target === 'string' ? () => target : target);
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get open(): number {
    return this.links.size;
  }

  /** Also for later connections, until told otherwise. */
  delay(direction: Direction, ms: number): void {
    this.delaysMs[direction] = ms;
    for (const link of this.links) link[direction].delayMs = ms;
  }

  /** FIN to both sides. */
  cut(): void {
    for (const link of this.links) link.end('cut');
  }

  /** RST to both sides. */
  reset(): void {
    for (const link of this.links) link.end('reset');
  }

  /** Both directions lose everything and neither side is told, not even of the other's end. For good. */
  halfOpen(): void {
    for (const { up, down } of this.links) {
      up.drop();
      down.drop();
    }
  }

  /** Nothing gets through in this direction until the thaw; nothing is lost, and the sender feels it. */
  freeze(direction: Direction): void {
    for (const link of this.links) link[direction].freeze();
  }

  thaw(direction: Direction): void {
    for (const link of this.links) link[direction].thaw();
  }

  /** Lets so many more bytes through in this direction, then ends the connection that carried the last of them. */
  endAfter(direction: Direction, bytes: number, then: Ending): void {
    this.limit = { direction, bytesLeft: bytes, then };
  }

  /** New connections are made by the kernel and get no answer, as from a stopped process. */
  pauseAccept(): void {
    this.accepting = false;
  }

  resumeAccept(): void {
    this.accepting = true;
    for (const socket of this.waiting.splice(0)) this.accept(socket);
  }

  async close(): Promise<void> {
    for (const socket of this.waiting.splice(0)) socket.destroy();
    for (const link of this.links) link.end('reset');
    this.server.close();
    await once(this.server, 'close');
  }

  private accept(socket: Socket): void {
    // Errors of a connection are its end, and tests look at ends.
    socket.on('error', () => undefined);
    if (!this.accepting) return void this.waiting.push(socket);
    this.connections += 1;
    const link: Link = new Link(socket, this.target(), {
      pass: (direction, count) => this.pass(direction, count),
      ending: () => this.limit?.then ?? 'cut',
      closed: () => void this.links.delete(link),
    });
    for (const direction of ['up', 'down'] as const) link[direction].delayMs = this.delaysMs[direction];
    this.links.add(link);
  }

  private pass(direction: Direction, count: number): { allowed: number; last: boolean } {
    const { limit } = this;
    const isLimited = limit?.direction === direction && limit.bytesLeft >= 0;
    const allowed = isLimited ? Math.min(count, limit.bytesLeft) : count;
    this.bytes[direction] += allowed;
    if (!isLimited) return { allowed, last: false };
    limit.bytesLeft -= allowed;
    const last = limit.bytesLeft === 0;
    if (last) limit.bytesLeft = -1;
    return { allowed, last };
  }
}

interface LinkListener {
  pass(direction: Direction, count: number): { allowed: number; last: boolean };
  ending(): Ending;
  closed(): void;
}

/** One connection: the client's socket, the server's, and a flow each way. */
class Link {
  readonly up: Flow;
  readonly down: Flow;
  private readonly server: Socket;
  private openSockets = 2;

  constructor(
    private readonly client: Socket,
    target: string,
    private readonly listener: LinkListener,
  ) {
    const at = target.lastIndexOf(':');
    this.server = connect({ host: target.slice(0, at), port: Number(target.slice(at + 1)), allowHalfOpen: true });
    this.server.on('error', () => undefined);
    this.client.setNoDelay(true);
    this.server.setNoDelay(true);
    this.up = this.flow('up', this.client, this.server);
    this.down = this.flow('down', this.server, this.client);
    this.client.on('close', (failed) => this.ended(this.server, failed, this.up));
    this.server.on('close', (failed) => this.ended(this.client, failed, this.down));
  }

  end(how: Ending): void {
    this.up.stop();
    this.down.stop();
    for (const socket of [this.client, this.server]) {
      if (how === 'reset') socket.resetAndDestroy();
      else socket.end(() => socket.destroy());
    }
  }

  private flow(direction: Direction, from: Socket, to: Socket): Flow {
    return new Flow(from, to, {
      pass: (count) => this.listener.pass(direction, count),
      limitReached: () => this.end(this.listener.ending()),
    });
  }

  private ended(other: Socket, failed: boolean, flow: Flow): void {
    this.openSockets -= 1;
    if (this.openSockets === 0) return this.listener.closed();
    // Half open means just that: the other side is not told.
    if (flow.dropping) return;
    if (failed) other.resetAndDestroy();
    else other.end(() => other.destroy());
  }
}
