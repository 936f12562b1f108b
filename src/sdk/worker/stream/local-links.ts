/**
 * Links whose stream lives on the loop that does the work: nothing crosses a thread, and a handler that computes for
 * longer than the session's time to live loses its lease.
 */
import { RpcConnection, type RpcOptions } from '../../transport/rpc.js';
import type { Link, LinkListener, Links, LinksHost } from './link.js';
import { StreamKeeper } from './stream-keeper.js';

/** A loop that asks itself is never silent. */
const NEVER_WEDGED = 0;

export class LocalLinks implements Links {
  constructor(
    private readonly address: string,
    private readonly options: RpcOptions,
    private readonly host: Pick<LinksHost, 'held'>,
  ) {}

  open(hello: Uint8Array, slots: number, listener: LinkListener): Link {
    const loop = { silentMs: 0, held: () => this.host.held(), passed: () => undefined };
    // A fresh connection for each: a reconnect must not land on the one that went silent.
    const rpc = new RpcConnection(this.address, this.options);
    const keeper = new StreamKeeper(rpc, hello, slots, NEVER_WEDGED, loop, listener);
    return {
      get writable() {
        return keeper.writable;
      },
      send: (frame) => keeper.send(frame),
      sendIfSilent: null,
      setSlots: (wanted) => keeper.setSlots(wanted),
      halfClose: () => keeper.halfClose(),
      give: (why) => keeper.give(why),
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
