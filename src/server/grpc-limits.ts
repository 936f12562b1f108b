/**
 * The limits of the gRPC server (quality.md, "Wire limits") as options of grpc-js.
 * Not within its reach: the metadata limit is Node's own (64 KiB of headers), pings of clients are not policed, and
 * the sixteen messages that a paused stream may hold unread are a constant of its streams.
 */
import type { ServerOptions } from '@grpc/grpc-js';
import { MAX_RECEIVE_BYTES, MAX_SEND_BYTES } from '../wire/frame-limits.js';
import type { ServerConfig } from './options.js';

const MAX_STREAMS_PER_CONNECTION = 128;

export function grpcLimits(config: ServerConfig): ServerOptions {
  return {
    'grpc.max_receive_message_length': MAX_RECEIVE_BYTES,
    'grpc.max_send_message_length': MAX_SEND_BYTES,
    'grpc.max_concurrent_streams': MAX_STREAMS_PER_CONNECTION,
    'grpc.keepalive_time_ms': config.keepaliveMs,
    'grpc.keepalive_timeout_ms': config.keepaliveTimeoutMs,
    'grpc.max_connection_age_ms': config.connectionAgeMs,
    'grpc.max_connection_age_grace_ms': config.connectionAgeGraceMs,
    // Its bookkeeping costs on every call, and nothing of ours reads it.
    'grpc.enable_channelz': 0,
  };
}
