// The server's side of a stream whose client reads when the test says so: what is sent stays pending until taken.

import {
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  create,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import type { Refusal } from '../../src/kernel/refusal.js';
import type { CallContext, StreamCall } from '../../src/services/call.js';

export class FakeCall<Output extends DescMessage> implements StreamCall<Output> {
  readonly context: CallContext = {
    requestId: 'request',
    principal: 'anonymous',
    source: 'rpc',
    traceContext: {},
    signal: new AbortController().signal,
  };
  readonly messages: MessageShape<Output>[] = [];
  pendingBytes = 0;
  /** The most that was ever pending. */
  mostPendingBytes = 0;
  paused = false;
  /** How the server ended the stream; null while it has not. */
  ended: 'ok' | Refusal | null = null;
  private untold: (() => void)[] = [];

  constructor(private readonly schema: Output) {}

  send(message: MessageInitShape<Output>, onSent?: () => void): void {
    this.sendEncoded(toBinary(this.schema, create(this.schema, message)));
    if (onSent !== undefined) this.untold.push(onSent);
  }

  sendEncoded(bytes: Uint8Array): void {
    if (this.ended !== null) return;
    this.messages.push(fromBinary(this.schema, bytes));
    this.pendingBytes += bytes.length;
    this.mostPendingBytes = Math.max(this.mostPendingBytes, this.pendingBytes);
  }

  /** The client reads all that was sent. */
  take(listener: { drained(): void }): void {
    this.pendingBytes = 0;
    for (const tell of this.untold.splice(0)) tell();
    listener.drained();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  end(): void {
    this.ended ??= 'ok';
  }

  fail(refusal: Refusal): void {
    this.ended ??= refusal;
  }
}
