/**
 * Connections for watch streams, apart from the one for calls: a server takes 128 streams per connection, and a
 * thousand watchers must neither starve a Get nor wait for one another. Opens a connection per hundred streams and
 * closes the surplus ones when their last stream has ended.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { TaskService, type WatchRequestSchema, type WatchResponse } from '../../gen/reeve/v1/task_service_pb.js';
import type { Reach } from '../transport/reach.js';
import { RpcConnection, type RpcOptions } from '../transport/rpc.js';

/** Below the 128 of the server, and of most proxies. */
const STREAMS_PER_CONNECTION = 100;

interface Slot {
  readonly rpc: RpcConnection;
  readonly streams: Set<ClientReadableStream<WatchResponse>>;
}

export interface WatchLease {
  readonly stream: ClientReadableStream<WatchResponse>;
  /** Cancels the stream if it still runs. Repetition is harmless. */
  release(): void;
}

export class WatchConnections {
  private slots: Slot[] = [];
  private closed = false;

  constructor(
    readonly reach: Reach,
    private readonly options: RpcOptions,
  ) {}

  open(request: MessageInitShape<typeof WatchRequestSchema>, signal: AbortSignal | undefined): WatchLease {
    if (this.closed) throw new Error('the client is closed');
    const slot = this.slotWithRoom();
    const stream = slot.rpc.serverStream(TaskService.method.watch, request);
    const cancel = () => stream.cancel();
    slot.streams.add(stream);
    if (signal?.aborted === true) cancel();
    else signal?.addEventListener('abort', cancel, { once: true });
    return {
      stream,
      release: () => {
        signal?.removeEventListener('abort', cancel);
        if (!slot.streams.delete(stream)) return;
        stream.cancel();
        if (slot.streams.size === 0) this.drop(slot);
      },
    };
  }

  /** Cancels every stream. */
  close(): void {
    this.closed = true;
    for (const { rpc, streams } of this.slots) {
      for (const stream of streams) stream.cancel();
      rpc.close();
    }
    this.slots = [];
  }

  private slotWithRoom(): Slot {
    const free = this.slots.find(({ streams }) => streams.size < STREAMS_PER_CONNECTION);
    if (free !== undefined) return free;
    const slot: Slot = { rpc: new RpcConnection(this.reach.address, this.options), streams: new Set() };
    this.reach.observe(slot.rpc, false);
    this.slots.push(slot);
    return slot;
  }

  private drop(slot: Slot): void {
    if (this.slots.length === 1 && !this.closed) return;
    this.slots = this.slots.filter((other) => other !== slot);
    slot.rpc.close();
  }
}
