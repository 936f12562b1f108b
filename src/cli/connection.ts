/**
 * The client side of every command: one connection to one address, calls bounded in time, a few quick retries with
 * the same request where that is safe. A person waits for the answer, so it gives up sooner than the SDK does.
 */
import { AdminService } from '../gen/reeve/v1/admin_service_pb.js';
import { TaskService } from '../gen/reeve/v1/task_service_pb.js';
import { WorkerService } from '../gen/reeve/v1/worker_service_pb.js';
import { type RawClient, rawClient } from '../sdk/transport/raw-clients.js';
import { Retrier } from '../sdk/transport/retry.js';
import { type CallOptions, RpcConnection } from '../sdk/transport/rpc.js';

/** One answer, all tries together. */
export const CALL_TIMEOUT_MS = 15_000;
const TRIES = 4;

export interface Connection {
  readonly address: string;
  readonly tasks: RawClient<typeof TaskService>;
  readonly workers: RawClient<typeof WorkerService>;
  readonly admin: RawClient<typeof AdminService>;
  readonly rpc: RpcConnection;
  /** Runs a unary call under the time limit, plus `extraMs` where the server itself waits. Throws ReeveError. */
  call<T>(run: (options: CallOptions) => Promise<T>, extraMs?: number): Promise<T>;
  close(): void;
}

export function openConnection(address: string): Connection {
  const rpc = new RpcConnection(address, { headers: { 'reeve-source': 'cli' } });
  const retrier = new Retrier({ maxAttempts: TRIES, initialMs: 50, maximumMs: 500 });
  return {
    address,
    rpc,
    tasks: rawClient(rpc, TaskService),
    workers: rawClient(rpc, WorkerService),
    admin: rawClient(rpc, AdminService),
    call: (run, extraMs = 0) => retrier.run(run, CALL_TIMEOUT_MS + extraMs),
    close: () => rpc.close(),
  };
}
