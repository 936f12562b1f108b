/**
 * A Reeve server that does only what a test tells it to: streams are handed to the test frame by frame, unary calls
 * to functions. Its connections can be cut. It must never decide anything by itself.
 */
import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyPack, durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type handleUnaryCall,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  type ServiceDefinition,
  type StatusObject,
  type UntypedServiceImplementation,
  status,
} from '@grpc/grpc-js';
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { ErrorInfoSchema, RetryInfoSchema } from '../../src/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.js';
import { TaskService } from '../../src/gen/reeve/v1/task_service_pb.js';
import { WorkerService } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { Incoming } from './incoming.js';

export interface Failure {
  readonly code: status;
  readonly reason?: string;
  readonly metadata?: Record<string, string>;
  readonly retryAfterMs?: number;
}

export class Refused extends Error {
  constructor(readonly failure: Failure) {
    super('refused by the test');
  }
}

type UnaryOf<Methods> = {
  [K in keyof Methods as Methods[K] extends DescMethodUnary ? K : never]?: Methods[K] extends DescMethodUnary<
    infer I,
    infer O
  >
    ? (request: MessageShape<I>) => MessageInitShape<O> | Promise<MessageInitShape<O>>
    : never;
};

type UnaryMethods = UnaryOf<typeof TaskService.method> & UnaryOf<typeof WorkerService.method>;

/** One stream a client has opened. */
export class Peer<I extends DescMessage, O extends DescMessage> {
  readonly frames = new Incoming<MessageShape<I>>();
  /** Resolves when the client has half-closed or gone. */
  readonly ended: Promise<void>;

  constructor(
    private readonly call: ServerDuplexStream<MessageShape<I>, MessageShape<O>>,
    private readonly output: O,
  ) {
    this.ended = new Promise((resolve) => {
      call.on('end', resolve);
      call.on('close', resolve);
      call.on('cancelled', resolve);
    });
    call.on('data', (message: MessageShape<I>) => this.frames.push(message));
    call.on('error', () => undefined);
  }

  send(message: MessageInitShape<O>): void {
    this.call.write(create(this.output, message));
  }

  /** Ends it OK. */
  end(): void {
    this.call.end();
  }

  fail(failure: Failure): void {
    this.call.emit('error', statusOf(failure));
  }
}

export type WorkPeer = Peer<typeof WorkerService.method.work.input, typeof WorkerService.method.work.output>;
export type SubmitPeer = Peer<
  typeof TaskService.method.submitStream.input,
  typeof TaskService.method.submitStream.output
>;

export interface WatchPeer {
  readonly request: MessageShape<typeof TaskService.method.watch.input>;
  send(message: MessageInitShape<typeof TaskService.method.watch.output>): void;
  end(): void;
  fail(failure: Failure): void;
  readonly cancelled: Promise<void>;
}

export class FakeServer {
  readonly works = new Incoming<WorkPeer>();
  readonly submits = new Incoming<SubmitPeer>();
  readonly watches = new Incoming<WatchPeer>();
  readonly unary: UnaryMethods = {};
  /** Stays the same after `stop`. */
  address = '';
  private readonly grpc = new Server();
  private readonly sockets = new Set<Socket>();
  private net: NetServer;

  private constructor() {
    this.grpc.addService(...this.service());
    const injector = this.grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.net = createServer((socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      injector.injectConnection(socket);
    });
  }

  /** @param address where an earlier one was; any free port otherwise. */
  static async start(address = ''): Promise<FakeServer> {
    const server = new FakeServer();
    await server.listen(Number(address.split(':')[1] ?? 0));
    return server;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Breaks every connection without a word. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    this.grpc.forceShutdown();
    await new Promise((resolve) => this.net.close(resolve));
  }

  private listen(port: number): Promise<void> {
    return new Promise((resolve) => {
      this.net.listen(port, '127.0.0.1', () => {
        this.address = `127.0.0.1:${(this.net.address() as AddressInfo).port}`;
        resolve();
      });
    });
  }

  private service(): [ServiceDefinition, UntypedServiceImplementation] {
    const definition: Record<string, MethodDefinition<MessageShape<DescMessage>, MessageShape<DescMessage>>> = {};
    const handlers: UntypedServiceImplementation = {};
    for (const method of [...TaskService.methods, ...WorkerService.methods]) {
      const name = `${method.parent.name}.${method.localName}`;
      definition[name] = {
        path: `/${method.parent.typeName}/${method.name}`,
        requestStream: method.methodKind === 'bidi_streaming',
        responseStream: method.methodKind !== 'unary',
        requestSerialize: (value: MessageShape<DescMessage>) => Buffer.from(toBinary(method.input, value)),
        requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
        responseSerialize: (value: MessageShape<DescMessage>) => Buffer.from(toBinary(method.output, value)),
        responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
      };
      if (method.methodKind !== 'unary') continue;
      const handler: handleUnaryCall<MessageShape<DescMessage>, MessageShape<DescMessage>> = (call, callback) => {
        const scripted = Object.entries(this.unary).find(([key]) => key === method.localName)?.[1];
        // The table is typed per method; here they are all alike.
        const answer = async () => create(method.output, await ((scripted ?? unscripted) as AnyUnary)(call.request));
        answer().then(
          (value) => callback(null, value),
          (error: unknown) => {
            const failure = { code: status.INTERNAL, reason: String(error) };
            callback(statusOf(error instanceof Refused ? error.failure : failure));
          },
        );
      };
      handlers[name] = handler;
    }
    handlers['WorkerService.work'] = bidi(WorkerService.method.work, (peer) => this.works.push(peer));
    handlers['TaskService.submitStream'] = bidi(TaskService.method.submitStream, (peer) => this.submits.push(peer));
    handlers['TaskService.watch'] = watch(TaskService.method.watch, (peer) => this.watches.push(peer));
    return [definition, handlers];
  }
}

type AnyUnary = (request: MessageShape<DescMessage>) => Promise<MessageInitShape<DescMessage>>;

function unscripted(): never {
  throw new Refused({ code: status.UNIMPLEMENTED });
}

function bidi<I extends DescMessage, O extends DescMessage>(
  method: DescMethodBiDiStreaming<I, O>,
  onPeer: (peer: Peer<I, O>) => void,
) {
  return (call: ServerDuplexStream<MessageShape<I>, MessageShape<O>>) => onPeer(new Peer(call, method.output));
}

function watch(method: typeof TaskService.method.watch & DescMethodServerStreaming, onPeer: (peer: WatchPeer) => void) {
  type Call = ServerWritableStream<MessageShape<typeof method.input>, MessageShape<typeof method.output>>;
  return (call: Call) => {
    call.on('error', () => undefined);
    onPeer({
      request: call.request,
      send: (message) => void call.write(create(method.output, message)),
      end: () => void call.end(),
      fail: (failure) => void call.emit('error', statusOf(failure)),
      cancelled: new Promise((resolve) => call.on('cancelled', resolve)),
    });
  };
}

export function statusOf({ code, reason, metadata = {}, retryAfterMs }: Failure): Partial<StatusObject> {
  const trailers = new Metadata();
  const details = [];
  if (reason !== undefined) {
    details.push(anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: 'reeve.dev', metadata })));
  }
  if (retryAfterMs !== undefined) {
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: durationFromMs(retryAfterMs) })));
  }
  if (details.length > 0) {
    const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message: 'refused', details }));
    trailers.set('grpc-status-details-bin', Buffer.from(bytes));
  }
  return { code, details: 'refused', metadata: trailers };
}
