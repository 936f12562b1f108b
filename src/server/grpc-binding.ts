/**
 * Services over grpc-js: a ServiceDefinition from the generated descriptor, and every method bound to its handler.
 * Messages cross grpc-js as bytes and are decoded here, so that what cannot be decoded is MALFORMED and not an
 * unexplained INTERNAL. Every handler is awaited and every throw is mapped; no message of a defect leaves the server.
 */
import { type DescMethod, type DescService, fromBinary, create, toBinary } from '@bufbuild/protobuf';
import type {
  MethodDefinition,
  Server,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
  sendUnaryData,
} from '@grpc/grpc-js';
import { malformed } from '../kernel/refusal.js';
import type { BidiHandler, Handlers, ServerStreamHandler, UnaryHandler } from '../services/call.js';
import { RefusalError } from '../wire/refusal-error.js';
import { GrpcCallContext } from './grpc-call-context.js';
import { GrpcStreamCall } from './grpc-stream-call.js';
import type { CallFailures } from './call-failures.js';

type Untyped = DescMethod['input'];

export function bindService<Service extends DescService>(
  server: Pick<Server, 'addService'>,
  service: Service,
  handlers: Handlers<Service>,
  failures: CallFailures,
): void {
  const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const method of service.methods) {
    definition[method.localName] = definitionOf(service, method);
    // The type of Handlers has paired each method with its own kind of handler.
    const handler = handlers[method.localName] as unknown;
    implementation[method.localName] = implementationOf(method, handler, failures);
  }
  server.addService(definition, implementation);
}

function definitionOf(service: DescService, method: DescMethod): MethodDefinition<Buffer, Buffer> {
  const asIs = (bytes: Buffer): Buffer => bytes;
  return {
    path: `/${service.typeName}/${method.name}`,
    requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

function implementationOf(
  method: DescMethod,
  handler: unknown,
  failures: CallFailures,
): UntypedServiceImplementation[string] {
  switch (method.methodKind) {
    case 'unary':
      return unary(method, handler as UnaryHandler<Untyped, Untyped>, failures);
    case 'server_streaming':
      return serverStreaming(method, handler as ServerStreamHandler<Untyped, Untyped>, failures);
    case 'bidi_streaming':
      return bidiStreaming(method, handler as BidiHandler<Untyped, Untyped>, failures);
    case 'client_streaming':
      throw new Error(`${method.name}: no contract of Reeve streams from the client only`);
  }
}

function unary(method: DescMethod, handler: UnaryHandler<Untyped, Untyped>, failures: CallFailures) {
  return (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void => {
    const context = new GrpcCallContext(call);
    const respond = async (): Promise<Buffer> => {
      const response = await handler(decoded(method.input, call.request), context);
      return bufferOf(toBinary(method.output, create(method.output, response)));
    };
    respond().then(
      (bytes) => answer(null, bytes),
      (error: unknown) => answer(failures.statusOf(error, context.requestId, method)),
    );
  };
}

function serverStreaming(method: DescMethod, handler: ServerStreamHandler<Untyped, Untyped>, failures: CallFailures) {
  return (call: ServerWritableStream<Buffer, Buffer>): void => {
    const stream = new GrpcStreamCall(call, method, failures);
    stream.serve(() => {
      const listener = handler(decoded(method.input, call.request), stream);
      return {
        received: () => undefined,
        halfClosed: () => undefined,
        drained: () => listener.drained(),
        closed: () => listener.closed(),
      };
    });
  };
}

function bidiStreaming(method: DescMethod, handler: BidiHandler<Untyped, Untyped>, failures: CallFailures) {
  return (call: ServerDuplexStream<Buffer, Buffer>): void => {
    const stream = new GrpcStreamCall(call, method, failures);
    stream.serve(() => handler(stream));
    stream.listen(call, (bytes) => decoded(method.input, bytes));
  };
}

function decoded(schema: Untyped, bytes: Buffer): ReturnType<typeof fromBinary<Untyped>> {
  try {
    return fromBinary(schema, bytes);
  } catch {
    throw new RefusalError(malformed('', `the message is not a ${schema.typeName}`));
  }
}

export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
