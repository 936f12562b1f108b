// A server process on a SQLite file, clients of it, workers in this process and in others, proxies between them. At
// the end everything is let go, the log has nothing to complain of, and the store is the truth: every record is the
// fold of its history, and nobody holds a lease.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { connect, type ReeveClient, type TaskEvent } from '../../src/sdk/client.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { ServerProcess } from '../chaos/server-process.js';
import { type StoredLife, storedTruth } from '../chaos/stored-truth.js';
import { ReeveClient as RawClient } from '../server/reeve-client.js';
import { FaultProxy } from './fault-proxy.js';
import { SdkWorker } from './sdk-worker.js';
import { WorkerProcess, type WorkerProcessOptions } from './worker-process.js';

export class FaultRig {
  private readonly proxies: FaultProxy[] = [];
  private readonly workers: SdkWorker[] = [];
  private readonly processes: WorkerProcess[] = [];
  private readonly raws: RawClient[] = [];
  private keys = 0;

  private constructor(
    private readonly folder: string,
    readonly server: ServerProcess,
    readonly reeve: ReeveClient,
  ) {}

  static async open(...flags: readonly string[]): Promise<FaultRig> {
    const folder = mkdtempSync(join(tmpdir(), 'reeve-faults-'));
    const server = new ServerProcess(join(folder, 'reeve.db'), flags);
    await server.start();
    return new FaultRig(folder, server, connect(server.address));
  }

  /** Frames and messages as they are, straight to the server or through a proxy. */
  raw(address = this.server.address): RawClient {
    const client = new RawClient(address);
    this.raws.push(client);
    return client;
  }

  async proxy(): Promise<FaultProxy> {
    const proxy = await FaultProxy.start(() => this.server.address);
    this.proxies.push(proxy);
    return proxy;
  }

  async worker(name: string, options: Parameters<typeof SdkWorker.start>[2] & { via?: FaultProxy } = {}) {
    const { via, ...rest } = options;
    const address = via?.address ?? this.server.address;
    const worker = await SdkWorker.start(address, name, { queues: [queueOf(name)], ...rest });
    this.workers.push(worker);
    return worker;
  }

  process(options: Omit<WorkerProcessOptions, 'address'>): WorkerProcess {
    const worker = WorkerProcess.start({ address: this.server.address, ...options });
    this.processes.push(worker);
    return worker;
  }

  /** A task for the workers of that queue. */
  async submit(queue: string, args: Readonly<Record<string, unknown>> = {}, more = {}): Promise<string> {
    this.keys += 1;
    const { task } = await this.reeve.submit({ kind: 'agent', key: `fault-${this.keys}`, queue, args, ...more });
    return task.id;
  }

  async eventsOf(taskId: string): Promise<TaskEvent[]> {
    const events: TaskEvent[] = [];
    for await (const event of this.reeve.events(taskId)) events.push(event);
    return events;
  }

  /** Their types without what is common to all. */
  async typesOf(taskId: string): Promise<string[]> {
    return (await this.eventsOf(taskId)).map(({ type }) => type.replace(/^reeve\.task\.|^task\./, ''));
  }

  /** Ends everything; the lives of all tasks, each proved. */
  async close(): Promise<Map<string, StoredLife>> {
    for (const process of this.processes) process.signal('SIGKILL');
    await Promise.all(this.workers.map((worker) => worker.stop()));
    for (const raw of this.raws) raw.close();
    await this.reeve.close();
    await this.server.kill('SIGTERM');
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    const store = await openSqliteStore({ path: join(this.folder, 'reeve.db') });
    try {
      expect(this.server.complaints).toEqual([]);
      return await storedTruth(store);
    } finally {
      await store.close();
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}

/** Workers of one name serve one queue, so that scenarios share a server and not their tasks. */
export function queueOf(name: string): string {
  return name.split('-')[0] ?? name;
}
