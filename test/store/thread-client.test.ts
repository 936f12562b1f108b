import type { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { settingsOf } from '../../src/store/sqlite/settings.js';
import { ThreadClient } from '../../src/store/sqlite/thread-client.js';

interface Calls {
  echo(text: string): string;
  crash(): never;
  leave(): never;
  ruin(): never;
  close(): null;
}

const SCRIPT = `
  import { parentPort } from 'node:worker_threads';
  parentPort.postMessage({ ok: true, value: 'ready' });
  parentPort.on('message', ([name, args]) => {
    if (name === 'crash') throw new Error('out of memory, say');
    if (name === 'leave') process.exit(3);
    if (name === 'close') {
      parentPort.postMessage({ ok: true, value: null });
      parentPort.close();
    } else if (name === 'ruin') parentPort.postMessage({ ok: false, failure: 'fatal', message: 'at COMMIT' });
    else parentPort.postMessage({ ok: true, value: args[0] });
  });
`;

/** Ends the thread as the operating system might: nobody asked for it. */
async function terminate(client: unknown): Promise<void> {
  await (client as { readonly worker: Worker }).worker.terminate();
}

describe('a store thread', () => {
  const start = () =>
    ThreadClient.start<Calls>(
      { role: 'writer', settings: settingsOf({ path: 'nowhere' }) },
      new URL(`data:text/javascript,${encodeURIComponent(SCRIPT)}`),
    );

  it('answers in the order of the calls', async () => {
    const { client, opened } = await start();
    expect(opened).toBe('ready');
    const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`);
    expect(await Promise.all(texts.map((text) => client.call('echo', text)))).toEqual(texts);
    await expect(client.call('leave')).rejects.toThrow();
  });

  it.each(['crash', 'leave'] as const)(
    'fails everything pending and everything later as fatal after a %s',
    async (way) => {
      const { client } = await start();
      const calls = [client.call(way), client.call('echo', 'pending'), client.call('echo', 'too')];
      for (const call of await Promise.allSettled(calls)) {
        expect(call).toMatchObject({ status: 'rejected', reason: { name: 'StoreError', failure: 'fatal' } });
      }
      await expect(client.call('echo', 'later')).rejects.toMatchObject({ failure: 'fatal' });
    },
  );

  it('says that it died though nobody waits for it, once, and at once to who asks later', async () => {
    const { client } = await start();
    const told: unknown[] = [];
    const death = new Promise((resolve) => {
      client.onDeath((error) => resolve(told.push(error)));
    });
    // No call: the death comes by itself.
    await terminate(client);
    await death;
    client.onDeath((error) => told.push(error));
    expect(told).toMatchObject([{ failure: 'fatal' }, { failure: 'fatal' }]);
  });

  it('says so of an answer that was fatal, and nothing of an end that was asked for', async () => {
    const { client } = await start();
    const { client: other } = await start();
    const told: unknown[] = [];
    client.onDeath((error) => told.push(error.message));
    other.onDeath((error) => told.push(error.message));
    await expect(client.call('ruin')).rejects.toThrow();
    await other.close();
    expect(told).toEqual(['at COMMIT']);
    await client.close();
  });

  it('takes no further call after an answer that was fatal', async () => {
    const { client } = await start();
    await expect(client.call('ruin')).rejects.toMatchObject({ failure: 'fatal', message: 'at COMMIT' });
    await expect(client.call('echo', 'later')).rejects.toMatchObject({ failure: 'fatal' });
    await client.close();
  });
});
