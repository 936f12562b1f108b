/**
 * What a handler is told of a gRPC call. Everything that most calls never ask for is made when it is asked for: this
 * is on the path of every call.
 */
import { randomUUID } from 'node:crypto';
import type { Metadata, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import type { AdmissionSource } from '../kernel/admission/identifiers.js';
import { ANONYMOUS } from '../kernel/cause.js';
import type { CallContext } from '../services/call.js';

export type AnyCall = Pick<
  ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>,
  'metadata' | 'cancelled'
> & {
  on(event: 'cancelled', listener: () => void): unknown;
};

/** Said by the `reeve` command line, so that a task knows which door it came in by. */
const SOURCE_KEY = 'reeve-source';
const TRACE_KEYS = ['traceparent', 'tracestate'] as const;
/** What the kernel takes of one entry, its name included; longer context of a call is not handed on. */
const MAX_TRACE_ENTRY_CHARACTERS = 512;

export class GrpcCallContext implements CallContext {
  readonly principal = ANONYMOUS;
  private id: string | null = null;
  private aborter: AbortController | null = null;

  constructor(private readonly call: AnyCall) {}

  get requestId(): string {
    this.id ??= randomUUID();
    return this.id;
  }

  get source(): AdmissionSource {
    return textOf(this.call.metadata, SOURCE_KEY) === 'cli' ? 'cli' : 'rpc';
  }

  get traceContext(): Readonly<Record<string, string>> {
    const context: Record<string, string> = {};
    for (const key of TRACE_KEYS) {
      const value = textOf(this.call.metadata, key);
      if (value !== '' && key.length + value.length <= MAX_TRACE_ENTRY_CHARACTERS) context[key] = value;
    }
    return context;
  }

  get signal(): AbortSignal {
    if (this.aborter === null) {
      const aborter = new AbortController();
      this.aborter = aborter;
      if (this.call.cancelled) aborter.abort();
      else this.call.on('cancelled', () => aborter.abort());
    }
    return this.aborter.signal;
  }
}

function textOf(metadata: Metadata, key: string): string {
  const value = metadata.get(key)[0];
  return typeof value === 'string' ? value : '';
}
