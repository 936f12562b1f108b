/**
 * What a handler knows of its call, and the shape of handlers: transport-free, so that a handler can be served over
 * gRPC, over HTTP or called by a test. Owns no behaviour. A handler throws RefusalError for what is refused; any other
 * throw is a defect, which whoever serves the call turns into INTERNAL.
 */
import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { AdmissionSource } from '../kernel/admission/identifiers.js';
import type { Refusal } from '../kernel/refusal.js';

export interface CallContext {
  /** Names the call in the log. */
  readonly requestId: string;
  /** The authenticated identity; `anonymous` without authentication. */
  readonly principal: string;
  /** The door, unless the call is a stream of its own kind. */
  readonly source: AdmissionSource;
  /** The call's W3C trace context. */
  readonly traceContext: Readonly<Record<string, string>>;
  /** Aborted when the client cancels, its deadline passes or its connection is lost. */
  readonly signal: AbortSignal;
}

/** The server's side of a stream: what a handler may do with it. After `end` or `fail` every call is ignored. */
export interface StreamCall<Output extends DescMessage> {
  readonly context: CallContext;
  /** Bytes handed to the transport and not taken by it yet. */
  readonly pendingBytes: number;
  /** Sends a message; `onSent` is told once the transport has taken it. */
  send(message: MessageInitShape<Output>, onSent?: () => void): void;
  /** Sends a message that is encoded already. */
  sendEncoded(bytes: Uint8Array): void;
  /** Stops reading: nothing more is received than what the transport holds already. */
  pause(): void;
  resume(): void;
  /** Ends OK, after what was sent. */
  end(): void;
  fail(refusal: Refusal): void;
}

/** What a stream handler is told. A throw ends the stream. */
export interface StreamListener<Input extends DescMessage> {
  received(message: MessageShape<Input>): void;
  /** The client has said everything. */
  halfClosed(): void;
  /** The transport has taken everything that was sent. */
  drained(): void;
  /** The stream is over, however it ended: release what is held. Called exactly once. */
  closed(): void;
}

export type UnaryHandler<Input extends DescMessage, Output extends DescMessage> = (
  request: MessageShape<Input>,
  context: CallContext,
) => Promise<MessageInitShape<Output>>;

export type ServerStreamHandler<Input extends DescMessage, Output extends DescMessage> = (
  request: MessageShape<Input>,
  call: StreamCall<Output>,
) => Pick<StreamListener<Input>, 'drained' | 'closed'>;

export type BidiHandler<Input extends DescMessage, Output extends DescMessage> = (
  call: StreamCall<Output>,
) => StreamListener<Input>;

/** A handler for every method of a service; leaving one out is a compile error. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: HandlerOf<Service['method'][Name]>;
};

type HandlerOf<Method> =
  Method extends DescMethodUnary<infer Input, infer Output>
    ? UnaryHandler<Input, Output>
    : Method extends DescMethodServerStreaming<infer Input, infer Output>
      ? ServerStreamHandler<Input, Output>
      : Method extends DescMethodBiDiStreaming<infer Input, infer Output>
        ? BidiHandler<Input, Output>
        : never;
