/**
 * One stream of grpc-js as a handler sees it. Owns the count of bytes that the transport has not taken yet, the single
 * end of the stream, and the mapping of every throw of the handler. Nothing is sent or received after the end.
 */
import { type DescMethod, type MessageShape, type MessageInitShape, create, toBinary } from '@bufbuild/protobuf';
import type { ServerDuplexStream, ServerWritableStream } from '@grpc/grpc-js';
import type { Refusal } from '../kernel/refusal.js';
import type { StreamCall, StreamListener } from '../services/call.js';
import type { CallFailures, GrpcStatus } from './call-failures.js';
import { GrpcCallContext } from './grpc-call-context.js';

type Untyped = DescMethod['input'];
type Writable = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

export class GrpcStreamCall implements StreamCall<Untyped> {
  readonly context: GrpcCallContext;
  pendingBytes = 0;
  private listener: StreamListener<Untyped> | null = null;
  private over = false;
  private readable: ServerDuplexStream<Buffer, Buffer> | null = null;

  constructor(
    private readonly call: Writable,
    private readonly method: DescMethod,
    private readonly failures: CallFailures,
  ) {
    this.context = new GrpcCallContext(call);
    call.on('cancelled', () => this.close());
  }

  /** Starts the handler; its listener is told everything from here on. */
  serve(start: () => StreamListener<Untyped>): void {
    this.guarded(() => {
      const listener = start();
      // The handler may have ended the stream before there was a listener to tell.
      if (this.over) listener.closed();
      else this.listener = listener;
    });
  }

  listen(call: ServerDuplexStream<Buffer, Buffer>, decode: (bytes: Buffer) => MessageShape<Untyped>): void {
    this.readable = call;
    call.on('data', (bytes: Buffer) => this.guarded(() => this.listener?.received(decode(bytes))));
    call.on('end', () => this.guarded(() => this.listener?.halfClosed()));
  }

  send(message: MessageInitShape<Untyped>, onSent?: () => void): void {
    if (this.over) return;
    this.write(toBinary(this.method.output, create(this.method.output, message)), onSent);
  }

  sendEncoded(bytes: Uint8Array): void {
    if (!this.over) this.write(bytes);
  }

  pause(): void {
    this.readable?.pause();
  }

  resume(): void {
    if (!this.over) this.readable?.resume();
  }

  end(): void {
    if (this.over) return;
    this.close();
    this.call.end();
  }

  fail(refusal: Refusal): void {
    this.failWith(this.failures.statusOfRefusal(refusal, this.context.requestId));
  }

  private write(bytes: Uint8Array, onSent?: () => void): void {
    const size = bytes.byteLength;
    this.pendingBytes += size;
    this.call.write(Buffer.from(bytes.buffer, bytes.byteOffset, size), (error?: Error | null) => {
      this.pendingBytes -= size;
      if (error) return;
      onSent?.();
      if (this.pendingBytes === 0 && !this.over) this.guarded(() => this.listener?.drained());
    });
  }

  private guarded(work: () => void): void {
    if (this.over) return;
    try {
      work();
    } catch (error) {
      this.failWith(this.failures.statusOf(error, this.context.requestId, this.method));
    }
  }

  private failWith(status: GrpcStatus): void {
    if (this.over) return;
    this.close();
    this.call.emit('error', status);
  }

  private close(): void {
    if (this.over) return;
    this.over = true;
    // What still arrives is taken and dropped, so that the transport can finish.
    this.readable?.resume();
    const { listener } = this;
    this.listener = null;
    try {
      listener?.closed();
    } catch (error) {
      this.failures.statusOf(error, this.context.requestId, this.method);
    }
  }
}
