/**
 * The generated services as plain objects, for what the SDK has no method for: protobuf messages in and out, no
 * retries, no defaults.
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
import type { ClientDuplexStream, ClientReadableStream } from '@grpc/grpc-js';
import type { CallOptions, RpcConnection } from './rpc.js';

type RawMethod<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => ClientReadableStream<MessageShape<O>>
      : M extends DescMethodBiDiStreaming<infer I, infer O>
        ? () => ClientDuplexStream<MessageInitShape<I>, MessageShape<O>>
        : never;

/** Every method of a service by its name, `raw.tasks.explain({ taskId })`. */
export type RawClient<S extends DescService> = { readonly [K in keyof S['method']]: RawMethod<S['method'][K]> };

export function rawClient<S extends DescService>(rpc: RpcConnection, service: S): RawClient<S> {
  const methods = Object.entries(service.method).map(([name, method]) => [name, bind(rpc, method)]);
  // The mapped type says per method what `bind` decides by the method's kind.
  return Object.fromEntries(methods) as RawClient<S>;
}

function bind(rpc: RpcConnection, method: DescService['methods'][number]) {
  // The kind is known only now; the descriptor's own type leaves it open.
  switch (method.methodKind) {
    case 'unary':
      return (request: MessageInitShape<DescMessage>, options?: CallOptions) =>
        rpc.unary(method as DescMethodUnary, request, options);
    case 'server_streaming':
      return (request: MessageInitShape<DescMessage>, options?: CallOptions) =>
        rpc.serverStream(method as DescMethodServerStreaming, request, options);
    case 'bidi_streaming':
      return () => rpc.bidi(method as DescMethodBiDiStreaming);
    case 'client_streaming':
      throw new Error(`${method.name}: Reeve has no client-streaming methods`);
  }
}
