/**
 * Links whose stream lives in a thread of its own, so that a handler which computes keeps its lease: the session is
 * renewed there while this loop says nothing, up to the limit. One thread per worker, from its first link to `close`;
 * one that ends unasked ends its links, and the next link gets a new one.
 */
import { status } from '@grpc/grpc-js';
import { Worker } from 'node:worker_threads';
import { ReeveError } from '../../transport/reeve-error.js';
import type { Link, LinkListener, Links, LinksHost } from './link.js';
import { inheritedBy } from './thread-flags.js';
import type { ThreadData, ToLoop, ToThread } from './thread-messages.js';

/** On its way to the stream, beyond which `writable` is false. */
const MAX_AHEAD_BYTES = 1_048_576;
/** Why a worker has no thread at all. */
export const THREAD_FAILED = 'THREAD_FAILED';

interface OpenLink {
  readonly listener: LinkListener;
  aheadBytes: number;
}

/** Tests run from the sources, and a thread can't: it takes the built file then (npm test builds first). */
function threadModule(): URL {
  const fromSources = import.meta.url.endsWith('.ts');
  const path = fromSources ? '../../../../dist/sdk/worker/stream/thread.js' : './thread.js';
  return new URL(path, import.meta.url);
}

function startThread(module: URL, workerData: ThreadData): Worker {
  const inherited = inheritedBy(process);
  try {
    return new Worker(module, { workerData, ...inherited });
  } catch (error) {
    // Flags of the whole process (heap sizes, for example) may be inherited and must not be listed; it needs none.
    if (inherited.execArgv === undefined) throw error;
    return new Worker(module, { workerData, ...inherited, execArgv: [] });
  }
}

export class ThreadLinks implements Links {
  private worker: Worker | null = null;
  private everReady = false;
  private lastLink = 0;
  private readonly links = new Map<number, OpenLink>();

  constructor(
    private readonly data: ThreadData,
    private readonly host: LinksHost,
    private readonly module: URL = threadModule(),
  ) {}

  open(hello: Uint8Array, slots: number, listener: LinkListener): Link {
    const link = ++this.lastLink;
    const open: OpenLink = { listener, aheadBytes: 0 };
    this.links.set(link, open);
    this.start();
    this.post({ type: 'open', link, hello, slots });
    return {
      get writable() {
        return open.aheadBytes < MAX_AHEAD_BYTES;
      },
      send: (frame) => {
        open.aheadBytes += frame.length;
        this.post({ type: 'send', link, frame });
      },
      sendIfSilent: (frame) => this.post({ type: 'send_if_silent', link, frame }),
      setSlots: (wanted) => this.post({ type: 'slots', link, slots: wanted }),
      halfClose: () => this.post({ type: 'half_close', link }),
      give: (why) => this.post({ type: 'give', link, why }),
    };
  }

  async close(): Promise<void> {
    const { worker } = this;
    this.worker = null;
    await worker?.terminate();
  }

  private start(): void {
    if (this.worker !== null) return;
    try {
      const worker = startThread(this.module, this.data);
      this.worker = worker;
      worker.on('message', (message: ToLoop) => this.hear(message));
      worker.on('error', (error) => this.died(worker, error));
      worker.on('exit', (code) => this.died(worker, new Error(`it ended with ${code}`)));
    } catch (error) {
      // What it was to be given cannot be handed to a thread. Whoever opens a link hears of its end later, not now.
      const why = error instanceof Error ? error : new Error(String(error));
      queueMicrotask(() => this.died(null, why));
    }
  }

  /** Frames are copied: a small one is a view of a pool, and a clone would carry the whole of that. */
  private post(message: ToThread): void {
    if (!('frame' in message)) return this.worker?.postMessage(message);
    const frame = new Uint8Array(message.frame);
    this.worker?.postMessage({ ...message, frame }, [frame.buffer]);
  }

  private hear(message: ToLoop): void {
    switch (message.type) {
      case 'ready':
        this.everReady = true;
        return;
      case 'ask':
        return this.post({ type: 'here', held: message.list ? this.host.held() : null });
      case 'stalled':
        return this.host.onStalled(message.silentMs);
      default: {
        const open = this.links.get(message.link);
        if (open !== undefined) this.pass(open, message);
      }
    }
  }

  private pass(open: OpenLink, message: Extract<ToLoop, { link: number }>): void {
    const { listener } = open;
    switch (message.type) {
      case 'frame':
        return listener.onFrame(message.frame, message.about);
      case 'renewed':
        return listener.onRenewed(message.sentAtMs);
      case 'unknown_frame':
        return listener.onUnknownFrame(message.frameId);
      case 'taken': {
        const wasFull = open.aheadBytes >= MAX_AHEAD_BYTES;
        open.aheadBytes -= message.bytes;
        if (wasFull && open.aheadBytes < MAX_AHEAD_BYTES) listener.onWritable();
        return;
      }
      case 'end':
        this.links.delete(message.link);
        return listener.onEnd(new ReeveError(message.ending));
    }
  }

  private died(worker: Worker | null, why: Error): void {
    // The end that was asked for is no death.
    if (this.worker !== worker) return;
    this.worker = null;
    const ending = this.everReady
      ? new ReeveError({ ...lost, message: `the thread that keeps the stream ended: ${why.message}`, cause: why })
      : new ReeveError({ ...failed, message: `${noThread}: ${why.message}`, cause: why });
    const open = [...this.links.values()];
    this.links.clear();
    for (const { listener } of open) listener.onEnd(ending);
  }
}

const lost = { reason: 'UNAVAILABLE', code: status.UNAVAILABLE } as const;
const failed = { reason: THREAD_FAILED, code: status.INTERNAL } as const;
const noThread =
  "the thread that renews the session could not start (keep reeve/worker out of a bundle, or say renewal: 'main')";
