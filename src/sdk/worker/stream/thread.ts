/**
 * The entry of the thread that keeps a worker's streams: it owns the socket and the heartbeats, and passes frames to
 * and from the loop that does the work. It decides nothing about claims. A handler that computes delays what it is
 * told, and nothing else.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { RpcConnection } from '../../transport/rpc.js';
import { serverFrameKind } from './frame-glance.js';
import type { LinkListener } from './link.js';
import { LOOK_MS, LoopWatch } from './loop-watch.js';
import { SessionHolder } from './session-holder.js';
import { ATTRACTS_CLAIMS_FOR_MS, StreamKeeper } from './stream-keeper.js';
import { type ThreadData, toFields, type ToLoop, type ToThread } from './thread-messages.js';

/** Bytes taken by the stream are told in steps of this size: far below what the loop may have on its way. */
const TOLD_AFTER_BYTES = 65_536;

interface OpenLink {
  readonly link: number;
  readonly keeper: StreamKeeper;
  untoldBytes: number;
}

class StreamThread {
  private current: OpenLink | null = null;
  private readonly watch = new LoopWatch((list) => this.tell({ type: 'ask', list }));
  private readonly holder: SessionHolder | null;

  constructor(
    private readonly port: MessagePort,
    private readonly data: ThreadData,
  ) {
    const { wedgedAfterMs } = data;
    const open = (hello: Uint8Array, slots: number, listener: LinkListener) => this.keep(hello, slots, listener);
    this.holder = data.reattaches ? new SessionHolder({ loop: this.watch, open, wedgedAfterMs }) : null;
    port.on('message', (message: ToThread) => this.hear(message));
    // What the loop has said by then is heard before it is judged.
    setInterval(() => setImmediate(() => this.look()), LOOK_MS);
    this.tell({ type: 'ready' });
  }

  private hear(message: ToThread): void {
    if (message.type === 'here') return this.answered(message);
    if (message.type === 'open') return this.open(message);
    const { current } = this;
    if (current?.link !== message.link) return;
    const { keeper } = current;
    switch (message.type) {
      case 'send':
        keeper.send(message.frame);
        current.untoldBytes += message.frame.length;
        if (keeper.writable && current.untoldBytes >= TOLD_AFTER_BYTES) this.tellTaken(current);
        return;
      case 'send_if_silent':
        return keeper.sendIfSilent(message.frame);
      case 'slots':
        return keeper.setSlots(message.slots);
      case 'half_close':
        return keeper.halfClose();
      case 'give':
        return keeper.give(message.why);
    }
  }

  private look(): void {
    this.watch.look();
    if (this.current !== null) this.current.keeper.look();
    else this.holder?.look();
  }

  private answered({ held }: Extract<ToThread, { type: 'here' }>): void {
    const silentMs = this.watch.answered(held);
    if (silentMs <= ATTRACTS_CLAIMS_FOR_MS) return;
    // Its slots are open again at once.
    this.current?.keeper.look();
    this.tell({ type: 'stalled', silentMs });
  }

  private open({ link, hello, slots }: Extract<ToThread, { type: 'open' }>): void {
    this.holder?.giveWay(hello);
    const keeper = this.keep(hello, slots, {
      onFrame: (frame, about) => {
        if (serverFrameKind(frame) === 'welcome') this.holder?.welcomed(frame);
        const copy = new Uint8Array(frame);
        this.tell({ type: 'frame', link, frame: copy, about }, [copy.buffer]);
      },
      onRenewed: (sentAtMs) => this.tell({ type: 'renewed', link, sentAtMs }),
      onUnknownFrame: (frameId) => this.tell({ type: 'unknown_frame', link, frameId }),
      onWritable: () => {
        if (this.current?.link === link) this.tellTaken(this.current);
      },
      onEnd: (ending) => {
        if (this.current?.link === link) this.current = null;
        this.holder?.ended(ending);
        this.tell({ type: 'end', link, ending: toFields(ending) });
      },
    });
    this.current = { link, keeper, untoldBytes: 0 };
  }

  private keep(hello: Uint8Array, slots: number, listener: LinkListener): StreamKeeper {
    const { address, wedgedAfterMs, ...options } = this.data;
    // A fresh connection for each: a reconnect must not land on the one that went silent.
    return new StreamKeeper(new RpcConnection(address, options), hello, slots, wedgedAfterMs, this.watch, listener);
  }

  private tellTaken(open: OpenLink): void {
    const bytes = open.untoldBytes;
    open.untoldBytes = 0;
    if (bytes > 0) this.tell({ type: 'taken', link: open.link, bytes });
  }

  private tell(message: ToLoop, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }
}

if (parentPort !== null) new StreamThread(parentPort, workerData as ThreadData);
