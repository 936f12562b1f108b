/**
 * One Work stream on a connection of its own: frames out as bytes, frames in as messages, one end. Behind this
 * interface the stream may live in another thread; nothing above it may know grpc-js.
 */
import { type WorkResponse, WorkerService } from '../../gen/reeve/v1/worker_service_pb.js';
import { fromStatus, type ReeveError } from '../transport/reeve-error.js';
import { RpcConnection, type RpcOptions } from '../transport/rpc.js';

export interface LinkListener {
  onFrame(frame: WorkResponse): void;
  /** `writable` is true again. */
  onDrain(): void;
  /** Once, whatever happened; code OK when the server ended it in peace. */
  onEnd(ending: ReeveError): void;
}

export interface Link {
  readonly writable: boolean;
  /** A WorkRequest, encoded. */
  send(frame: Uint8Array): void;
  /** Says that nothing more comes; the server answers what is outstanding and ends. */
  halfClose(): void;
  /** Ends it at once. */
  abort(): void;
}

export type OpenLink = (listener: LinkListener) => Link;

/** Links to one address. Each has a fresh connection: a reconnect must not land on the one that went silent. */
export function grpcLinks(address: string, options: RpcOptions): OpenLink {
  return (listener) => {
    const rpc = new RpcConnection(address, options);
    const stream = rpc.bidiEncoded(WorkerService.method.work);
    let writable = true;
    stream.on('data', (frame: WorkResponse) => listener.onFrame(frame));
    stream.on('drain', () => {
      writable = true;
      listener.onDrain();
    });
    // The status carries the same and always comes.
    stream.on('error', () => undefined);
    stream.on('status', ({ code, details, metadata }) => {
      rpc.close();
      listener.onEnd(fromStatus(code, details, metadata));
    });
    return {
      get writable() {
        return writable;
      },
      send: (frame) => {
        writable = stream.write(frame);
      },
      halfClose: () => void stream.end(),
      abort: () => stream.cancel(),
    };
  };
}
