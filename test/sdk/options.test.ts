// What users hand over wrongly is told at once, by name, and nothing is started for it.

import { credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ConnectOptions, connect, OptionError } from '../../src/sdk/client.js';
import { createWorker } from '../../src/sdk/worker.js';
import { readWorkerOptions } from '../../src/sdk/worker/worker-options.js';
import { claimOf } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

const handlers = { agent: () => null };
const good = { address: '127.0.0.1:7450', handlers };

/** As from JavaScript, where nobody checks. */
function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

function createFrom(options: unknown): unknown {
  return thrownBy(() => createWorker(options as Parameters<typeof createWorker>[0]));
}

describe('createWorker refuses', () => {
  test.each<[string, object]>([
    ['address', { address: undefined }],
    ['address', { address: '' }],
    ['address', { address: '127.0.0.1' }],
    ['address', { address: ':7450' }],
    ['address', { address: 'host:0' }],
    ['address', { address: 'host:99999' }],
    ['address', { address: 'host:port' }],
    ['address', { address: 'http://127.0.0.1:7450' }],
    ['handlers', { handlers: undefined }],
    ['handlers', { handlers: {} }],
    ['handlers', { handlers: [] }],
    ['handlers', { handlers: new Map([['agent', () => null]]) }],
    ['handlers.agent', { handlers: { agent: undefined } }],
    ['handlers.agent', { handlers: { agent: 'agent' } }],
    ['namespaces', { namespaces: 'default' }],
    ['namespaces[1]', { namespaces: ['default', 7] }],
    ['queues', { queues: 'default' }],
    ['capabilities', { capabilities: 'gpu' }],
    ['executionTargets', { executionTargets: 'host' }],
    ['executionTargets[0]', { executionTargets: ['HOST'] }],
    ['slots', { slots: 1.5 }],
    ['slots', { slots: -1 }],
    ['slots', { slots: '10' }],
    ['slots', { slots: Number.NaN }],
    ['slots', { slots: 10_001 }],
    ['maxUnansweredEvents', { maxUnansweredEvents: Number.NaN }],
    ['maxUnansweredBytes', { maxUnansweredBytes: 0 }],
    ['renewal', { renewal: 'loop' }],
    ['signals', { signals: 'SIGTERM' }],
    ['signals[0]', { signals: ['SIGTREM'] }],
    ['signals[0]', { signals: ['SIGKILL'] }],
    ['name', { name: 7 }],
    ['name', { name: '' }],
    ['version', { version: 1 }],
    ['onNotice', { onNotice: 'log' }],
    ['onSettled', { onSettled: {} }],
    ['headers.authorization', { headers: { authorization: 7 } }],
    ['headers.a b', { headers: { 'a b': 'c' } }],
    ['tls', { tls: { cert: 'pem' } }],
    ['tls.ca', { tls: { ca: 7 } }],
    ['credentials', { credentials: credentials.createInsecure(), renewal: 'thread' }],
    ...['ttlMs', 'lingerMs', 'wedgedAfterMs', 'drainGraceMs', 'drainStopMs'].flatMap((option): [string, object][] =>
      [Number.NaN, -1, '30', null].map((value) => [option, { [option]: value }]),
    ),
  ])('%s in %o', (option, wrong) => {
    const error = createFrom({ ...good, ...wrong });
    expect(error).toBeInstanceOf(OptionError);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ option, message: expect.stringContaining(option) as string });
  });

  test('no options at all', () => {
    expect(createFrom(undefined)).toMatchObject({ option: 'options' });
  });
});

test.each(['127.0.0.1:7450', '[::1]:7450', 'reeve.example.com:443', 'dns:///reeve:7450', 'unix:/run/reeve.sock'])(
  'the address %s is one',
  (address) => {
    expect(createFrom({ ...good, address })).toBeUndefined();
  },
);

describe('connect refuses', () => {
  test.each<[string, ConnectOptions]>([
    ['callTimeoutMs', { callTimeoutMs: Number.NaN }],
    ['submitTimeoutMs', { submitTimeoutMs: -1 }],
    ['connectTimeoutMs', { connectTimeoutMs: Number.NaN }],
    ['retry.maxAttempts', { retry: { maxAttempts: Number.NaN } }],
    ['retry.initialMs', { retry: { initialMs: Number.NaN } }],
    ['retry.maximumMs', { retry: { maximumMs: -1 } }],
    ['submitStream.maxInFlight', { submitStream: { maxInFlight: 0 } }],
  ])('%s in %o', (option, options) => {
    expect(thrownBy(() => connect('127.0.0.1:7450', options))).toMatchObject({ name: 'OptionError', option });
  });

  test('an address that is none', () => {
    expect(thrownBy(() => connect('7450'))).toMatchObject({ name: 'OptionError', option: 'address' });
  });

  test.each<[string, (client: ReturnType<typeof connect>) => Promise<unknown>]>([
    ['timeoutMs', (client) => client.get('t', { timeoutMs: Number.NaN })],
    ['timeoutMs', (client) => client.result('t', { timeoutMs: -1 })],
    ['timeoutMs', (client) => client.submit({ kind: 'agent', key: 'k' }, { timeoutMs: Number.NaN })],
    ['waitTimeoutMs', (client) => client.cancel('t', { waitFor: 'settled', waitTimeoutMs: Number.NaN })],
    ['graceMs', (client) => client.cancel('t', { graceMs: Number.NaN })],
    ['reconnectMs', (client) => client.watch('t', { reconnectMs: Number.NaN }).next()],
    ['startByMs', (client) => client.submit({ kind: 'agent', key: 'k', startByMs: Number.POSITIVE_INFINITY })],
  ])('%s of a call', async (option, call) => {
    await expect(call(connect('127.0.0.1:7450'))).rejects.toMatchObject({ name: 'OptionError', option });
  });
});

describe('a wait that no timer holds', () => {
  let fixture: WorkerFixture;

  beforeEach(async () => {
    fixture = await WorkerFixture.open();
  });

  afterEach(() => fixture.close());

  test.each([2 ** 31, Number.POSITIVE_INFINITY])('of %f ms is a long one, not none', async (drainGraceMs) => {
    const session = await fixture.start(fixture.held, { drainGraceMs });
    session.claim(claimOf('t1'));
    const { context, finish } = await fixture.begun.next();
    const drained = fixture.worker.drain();
    await session.next('drain');
    // What would have been stopped after 1 ms is, by the time this is answered.
    fixture.worker.setSlots(3);
    await session.next('slots');
    finish('in time');
    expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
    expect(context.signal.aborted).toBe(false);
    session.judge('t1', 3);
    await session.peer.ended;
    session.peer.end();
    await drained;
  });

  test('is no option of a drain where it is no number, and the drain may be asked for again', async () => {
    await fixture.start(fixture.held);
    await expect(fixture.worker.drain({ graceMs: Number.NaN })).rejects.toMatchObject({ option: 'graceMs' });
    await expect(fixture.worker.drain({ answerMs: -1 })).rejects.toMatchObject({ option: 'answerMs' });
    await fixture.worker.drain({ graceMs: 0, answerMs: 0 });
  });

  test('comes from a server too, which drains in a hundred days', async () => {
    const session = await fixture.start(fixture.held);
    session.peer.send({
      frame: { case: 'drain', value: { reconnectAfter: { seconds: 8_640_000n, nanos: 0 } } },
    });
    await fixture.notices.find(({ type }) => type === 'server_draining');
    session.claim(claimOf('t1'));
    await fixture.begun.next();
    expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
    // What would have left after 1 ms has, by now.
    fixture.worker.setSlots(3);
    expect((await session.next('slots')).slots).toBe(3);
  });
});

test('the old name of a kind is the kind: its claims come under the new one', () => {
  const playbook = () => undefined;
  const options = { address: 'localhost:1', handlers: { playbook } };
  expect(readWorkerOptions(options)).toMatchObject({
    handlers: new Map([['play', playbook]]),
    hello: { actionKinds: ['play'] },
  });
  expect(() => readWorkerOptions({ ...options, handlers: { play: playbook, playbook } })).toThrow(
    /handlers\.playbook is the old name/,
  );
});
