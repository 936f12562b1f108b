// A real server on a free port over a memory store, for one test file.

import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { type RunningServer, type StartOptions, startServer } from '../../src/server/start-server.js';
import { loadConfig } from '../../src/server/load-config.js';
import type { ServerConfig } from '../../src/server/options.js';
import { ReeveClient } from './reeve-client.js';

export interface Fixture {
  readonly server: RunningServer;
  readonly client: ReeveClient;
  readonly store: TaskStore;
  close(): Promise<void>;
}

export async function startFixture(
  settings: Partial<ServerConfig> = {},
  options: StartOptions & { readonly wrap?: (store: TaskStore) => TaskStore } = {},
): Promise<Fixture> {
  const { wrap = (store: TaskStore) => store, ...rest } = options;
  const store = wrap(openMemoryStore());
  const config = { ...loadConfig({ env: {} }), listen: '127.0.0.1:0', logLevel: 'silent' as const, ...settings };
  const server = await startServer(config, { store, ...rest });
  const client = new ReeveClient(server.address);
  return {
    server,
    client,
    store,
    close: async () => {
      client.close();
      await server.stop(0);
    },
  };
}

let made = 0;

/** A key that no other test of this process uses. */
export function freshKey(prefix = 'key'): string {
  made += 1;
  return `${prefix}-${process.pid}-${made}`;
}
