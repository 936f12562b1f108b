// A plain client for tests: any method of a generated service over grpc-js, with refusals decoded from their details.

import {
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
  create,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RetryInfoSchema,
} from '../../src/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.js';
import { AdminService } from '../../src/gen/reeve/v1/admin_service_pb.js';
import { TaskService } from '../../src/gen/reeve/v1/task_service_pb.js';
import { WorkerService } from '../../src/gen/reeve/v1/worker_service_pb.js';

export interface Refused {
  readonly code: grpc.status;
  readonly message: string;
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly field?: string;
  readonly violation?: string;
  readonly retryMs?: number;
}

const asIs = (bytes: Buffer): Buffer => bytes;

export class ReeveClient {
  readonly client: grpc.Client;

  constructor(address: string, options: grpc.ChannelOptions = {}) {
    this.client = new grpc.Client(address, grpc.credentials.createInsecure(), options);
  }

  close(): void {
    this.client.close();
  }

  /** Resolves with the response; rejects with the grpc error. */
  unary<Method extends DescMethod & { methodKind: 'unary' }>(
    method: Method,
    request: MessageInitShape<Method['input']>,
    options: grpc.CallOptions = {},
    metadata = new grpc.Metadata(),
  ): Promise<MessageShape<Method['output']>> {
    return this.unaryBytes(method, toBinary(method.input, create(method.input, request)), options, metadata);
  }

  unaryBytes<Method extends DescMethod & { methodKind: 'unary' }>(
    method: Method,
    request: Uint8Array,
    options: grpc.CallOptions = {},
    metadata = new grpc.Metadata(),
  ): Promise<MessageShape<Method['output']>> {
    return new Promise((resolve, reject) => {
      const answer: grpc.requestCallback<Buffer> = (error, bytes) => {
        if (error !== null) reject(error);
        else resolve(fromBinary(method.output, bytes ?? new Uint8Array()) as MessageShape<Method['output']>);
      };
      this.client.makeUnaryRequest(pathOf(method), asIs, asIs, Buffer.from(request), metadata, options, answer);
    });
  }

  serverStream<Method extends DescMethod & { methodKind: 'server_streaming' }>(
    method: Method,
    request: MessageInitShape<Method['input']>,
  ): Received<Method> {
    const bytes = Buffer.from(toBinary(method.input, create(method.input, request)));
    return new Received(method, this.client.makeServerStreamRequest(pathOf(method), asIs, asIs, bytes));
  }

  bidi<Method extends DescMethod & { methodKind: 'bidi_streaming' }>(method: Method): Duplex<Method> {
    return new Duplex(method, this.client.makeBidiStreamRequest(pathOf(method), asIs, asIs));
  }
}

type Incoming = grpc.ClientReadableStream<Buffer> | grpc.ClientDuplexStream<Buffer, Buffer>;

/** What a stream has said so far, and the next of it. */
export class Received<Method extends DescMethod> {
  readonly messages: MessageShape<Method['output']>[] = [];
  /** Resolves with the error that ended the stream, or null for OK. */
  readonly ended: Promise<grpc.ServiceError | null>;
  private read = 0;
  private over = false;
  private waiting: (() => void)[] = [];

  constructor(
    method: Method,
    readonly call: Incoming,
  ) {
    call.on('data', (bytes: Buffer) => {
      this.messages.push(fromBinary(method.output, bytes) as MessageShape<Method['output']>);
      this.wake();
    });
    this.ended = new Promise((resolve) => {
      call.on('error', (error: grpc.ServiceError) => this.end(() => resolve(error)));
      call.on('end', () => this.end(() => resolve(null)));
    });
  }

  /** The next message not yet taken; undefined when the stream is over. */
  async next(): Promise<MessageShape<Method['output']> | undefined> {
    while (this.read >= this.messages.length) {
      if (this.over) return undefined;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
    return this.messages[this.read++];
  }

  cancel(): void {
    this.call.cancel();
  }

  private end(tell: () => void): void {
    this.over = true;
    tell();
    this.wake();
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

export class Duplex<Method extends DescMethod> extends Received<Method> {
  constructor(
    private readonly method: Method,
    private readonly duplex: grpc.ClientDuplexStream<Buffer, Buffer>,
  ) {
    super(method, duplex);
  }

  send(message: MessageInitShape<Method['input']>): void {
    this.duplex.write(Buffer.from(toBinary(this.method.input, create(this.method.input, message))));
  }

  half(): void {
    this.duplex.end();
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The refusal inside a grpc error. */
export function refusedOf(error: unknown): Refused {
  const { code, details, metadata } = error as grpc.ServiceError;
  const raw = metadata?.get('grpc-status-details-bin')[0];
  if (!(raw instanceof Buffer)) {
    return { code, message: details, reason: '', domain: '', metadata: {} };
  }
  const status = fromBinary(StatusSchema, raw);
  let refused: Refused = { code, message: status.message, reason: '', domain: '', metadata: {} };
  for (const detail of status.details) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info !== undefined) refused = { ...refused, reason: info.reason, domain: info.domain, metadata: info.metadata };
    const bad = anyUnpack(detail, BadRequestSchema)?.fieldViolations[0];
    if (bad !== undefined) refused = { ...refused, field: bad.field };
    const failure = anyUnpack(detail, PreconditionFailureSchema)?.violations[0];
    if (failure !== undefined) refused = { ...refused, violation: failure.type };
    const delay = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
    if (delay !== undefined) refused = { ...refused, retryMs: Number(delay.seconds) * 1_000 + delay.nanos / 1e6 };
  }
  return refused;
}

/** Waits for the refusal; an answer instead is an error. */
export async function refusal(answer: Promise<unknown>): Promise<Refused> {
  const outcome = await answer.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ('value' in outcome) throw new Error('expected a refusal, got an answer');
  return refusedOf(outcome.error);
}

export const tasks = TaskService.method;
export const workers = WorkerService.method;
export const admin = AdminService.method;

/** What grpc.health.v1 says of a service; '' for the server as a whole. */
export function checkHealth({ client }: ReeveClient, service: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { Check } = healthService;
    if (Check === undefined || !('requestSerialize' in Check)) throw new Error('no Check');
    client.makeUnaryRequest(
      Check.path,
      Check.requestSerialize,
      Check.responseDeserialize,
      { service },
      (error, answer) => (error === null ? resolve(answer) : reject(error)),
    );
  });
}
