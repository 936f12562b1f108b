/**
 * gRPC over protobuf-es descriptors: one connection, its calls typed by the generated methods. Nothing is retried
 * here and every failure is a ReeveError. The only place that knows how grpc-js frames a call.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import {
  type ChannelCredentials,
  type ChannelInterface,
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  type ClientReadableStream,
  credentials as grpcCredentials,
  Metadata,
} from '@grpc/grpc-js';
import { toReeveError } from './reeve-error.js';

/** What a connection with TLS needs, as plain values: they can be handed to a thread. */
export interface TlsOptions {
  /** Roots to trust, PEM. Default: those of Node. */
  readonly ca?: string | Uint8Array | undefined;
  /** The client's own certificate chain and key, PEM; both or neither. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
}

export interface RpcOptions {
  /** Default: plain text. */
  readonly tls?: TlsOptions | undefined;
  /** Instead of `tls`: credentials of grpc-js, for what plain values cannot say. */
  readonly credentials?: ChannelCredentials | undefined;
  /** Sent with every call, `authorization` for example. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface CallOptions {
  /** When to give up. Default: never. */
  readonly deadline?: Date | undefined;
  readonly signal?: AbortSignal | undefined;
}

export class RpcConnection {
  private readonly client: Client;
  private readonly metadata = new Metadata();

  /** @param address `host:port`, or any other gRPC target. Connects with the first call. */
  constructor(address: string, options: RpcOptions) {
    for (const [name, value] of Object.entries(options.headers ?? {})) this.metadata.set(name, value);
    this.client = new Client(address, options.credentials ?? credentialsOf(options.tls), channelOptions);
  }

  get channel(): ChannelInterface {
    return this.client.getChannel();
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(abortError(signal));
      const cancel = () => call.cancel();
      const call = this.client.makeUnaryRequest(
        pathOf(method),
        (message: MessageShape<I>) => encode(method.input, message),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        this.metadata,
        callOptions(options),
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          if (response !== undefined) resolve(response);
          else reject(signal?.aborted === true ? abortError(signal) : toReeveError(error));
        },
      );
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  serverStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): ClientReadableStream<MessageShape<O>> {
    return this.client.makeServerStreamRequest(
      pathOf(method),
      (message: MessageShape<I>) => encode(method.input, message),
      (bytes) => fromBinary(method.output, bytes),
      create(method.input, request),
      this.metadata,
      callOptions(options),
    );
  }

  bidi<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
  ): ClientDuplexStream<MessageInitShape<I>, MessageShape<O>> {
    return this.client.makeBidiStreamRequest(
      pathOf(method),
      (message: MessageInitShape<I>) => encode(method.input, create(method.input, message)),
      (bytes) => fromBinary(method.output, bytes),
      this.metadata,
    );
  }

  /** As `bidi`, for frames that are encoded already. */
  bidiEncoded<O extends DescMessage>(
    method: DescMethodBiDiStreaming<DescMessage, O>,
  ): ClientDuplexStream<Uint8Array, MessageShape<O>> {
    return this.client.makeBidiStreamRequest(
      pathOf(method),
      asBuffer,
      (bytes) => fromBinary(method.output, bytes),
      this.metadata,
    );
  }

  /** As `bidiEncoded`, and what comes is left encoded too. */
  bidiBytes(method: DescMethodBiDiStreaming): ClientDuplexStream<Uint8Array, Uint8Array> {
    return this.client.makeBidiStreamRequest(pathOf(method), asBuffer, (bytes) => bytes, this.metadata);
  }

  /** Ends the connection once its calls have ended. */
  close(): void {
    this.client.close();
  }
}

// A connection of its own, not one shared through grpc-js's global pool: after a silent death of the old one
// a reconnect must not land on it again.
const channelOptions: ClientOptions = {
  'grpc.use_local_subchannel_pool': 1,
  'grpc.max_receive_message_length': 8 * 1024 * 1024,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 5_000,
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.enable_retries': 0,
};

function credentialsOf(tls: TlsOptions | undefined): ChannelCredentials {
  if (tls === undefined) return grpcCredentials.createInsecure();
  return grpcCredentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.cert));
}

function pem(value: string | Uint8Array | undefined): Buffer | null {
  return value === undefined ? null : Buffer.from(value);
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encode<I extends DescMessage>(schema: I, message: MessageShape<I>): Buffer {
  return asBuffer(toBinary(schema, message));
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function callOptions(options: CallOptions): { deadline?: Date } {
  return options.deadline === undefined ? {} : { deadline: options.deadline };
}

/** What an aborted call throws: the signal's own reason. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException('The operation was aborted', 'AbortError');
}
