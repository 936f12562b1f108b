// Whether the server says that it serves while its store does not.

import { expect, it } from 'vitest';
import { RETRY_AFTER_OUTAGE_MS, StoreHealth } from '../../src/server/store-health.js';
import { StoreError } from '../../src/store/store-error.js';
import { ManualClock } from '../support/manual-clock.js';
import { checkHealth, tasks } from './reeve-client.js';
import { freshKey, startFixture } from './server-fixture.js';

function standing() {
  const clock = new ManualClock();
  const said: string[] = [];
  const health = { serving: () => said.push('serving'), notServing: () => said.push('not serving') };
  const log = { warn: () => said.push('warned'), info: () => said.push('told') };
  return { clock, said, store: new StoreHealth(health, clock, log as never) };
}

it('it does not, says so once, and tries again after the last failure', async () => {
  const { clock, said, store } = standing();
  store.failed();
  await clock.advance(RETRY_AFTER_OUTAGE_MS - 1);
  store.failed();
  await clock.advance(RETRY_AFTER_OUTAGE_MS - 1);
  expect(said).toEqual(['not serving', 'warned']);
  await clock.advance(1);
  expect(said).toEqual(['not serving', 'warned', 'serving', 'told']);
  store.failed();
  expect(said.slice(4)).toEqual(['not serving', 'warned']);
});

it('it never says that it serves once it stops', async () => {
  const { clock, said, store } = standing();
  store.failed();
  store.stop();
  await clock.advance(RETRY_AFTER_OUTAGE_MS * 2);
  store.failed();
  expect(said).toEqual(['not serving', 'warned']);
});

it('clients of the health service hear of it', async () => {
  const script = { broken: false };
  const fixture = await startFixture(
    {},
    {
      wrap: (store) =>
        new Proxy(store, {
          get: (target, name: keyof typeof store) =>
            name === 'commit' && script.broken
              ? () => Promise.reject(new StoreError('unavailable', 'no room'))
              : Reflect.get(target, name),
        }),
    },
  );
  const check = (): Promise<unknown> => checkHealth(fixture.client, '');
  try {
    expect(await check()).toMatchObject({ status: 'SERVING' });
    script.broken = true;
    await fixture.client
      .unary(tasks.submit, { idempotencyKey: freshKey(), actionKind: 'agent', executionTarget: 1 })
      .catch(() => undefined);
    expect(await check()).toMatchObject({ status: 'NOT_SERVING' });
  } finally {
    script.broken = false;
    await fixture.close();
  }
});
