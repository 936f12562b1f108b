// Embedded on a SQLite file: one process at a time, everything there after a restart, and the same history as through a
// server. Also what openAuthority refuses, and the store that dies.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openAuthority } from '../../src/embed/authority.js';
import { openEmbedded } from '../../src/embed/open-authority.js';
import { ExecutionTarget } from '../../src/gen/reeve/v1/task_pb.js';
import { startServer } from '../../src/server/start-server.js';
import { loadConfig } from '../../src/server/load-config.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { ReeveClient, tasks } from '../server/reeve-client.js';
import { probeStore } from '../support/store-probe.js';
import { Signal } from '../support/turns.js';
import { all, refusalOf } from './embedded-fixture.js';

const folder = mkdtempSync(join(tmpdir(), 'reeve-embedded-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = (name: string): string => `sqlite:${join(folder, name)}`;

describe('a SQLite file', () => {
  it('is one process: a second authority is refused while the first has it, and has it after', async () => {
    const store = fileOf('lock.db');
    const first = await openAuthority({ store });
    const { task } = await first.submit({ kind: 'agent', key: 'k' });
    const refused = await refusalOf(openAuthority({ store }));
    expect(refused).toMatchObject({ reason: 'STORE_UNAVAILABLE', retryable: true });
    const config = { ...loadConfig({ env: {} }), store, listen: '127.0.0.1:0', logLevel: 'silent' as const };
    await expect(startServer(config)).rejects.toThrow(/another process|lock/i);
    await first.close();
    const second = await openAuthority({ store });
    expect((await second.get(task.id)).key).toBe('k');
    await second.close();
  });

  it('keeps everything: keys, leases, histories, generations', async () => {
    const store = fileOf('restart.db');
    const first = await openAuthority({ store });
    const { task } = await first.submit({ kind: 'agent', key: 'k', args: { n: 1 } });
    const claim = await first.claim(task.id, { key: 'claim', ttlMs: 60_000 });
    await claim.report({ type: 'accepted' }, { type: 'started' }, { type: 'output', output: { n: 1 } });
    const before = await all(first.events(task.id));
    await first.close();
    expect((await refusalOf(claim.renew())).reason).toBe('DRAINING');

    const second = await openAuthority({ store });
    expect(await all(second.events(task.id))).toEqual(before);
    expect(await second.submit({ kind: 'agent', key: 'k', args: { n: 1 } })).toMatchObject({ outcome: 'REPLAYED' });
    // The repetition of its key hands the claim to the worker that has restarted with the program.
    const again = await second.claim(task.id, { key: 'claim', ttlMs: 60_000 });
    expect(again.lease).toEqual(claim.lease);
    await again.report({ type: 'completed', result: 'done' });
    expect(await second.get(task.id)).toMatchObject({ status: 'completed', result: 'done' });
    await second.close();
  });

  it('has the same history whether a server or a program wrote it', async () => {
    const shape = (event: { type: string; generation: number; revision: number | null }): unknown[] => [
      event.type,
      event.generation,
      event.revision ?? 0,
    ];
    const config = { ...loadConfig({ env: {} }), listen: '127.0.0.1:0', logLevel: 'silent' as const };
    const server = await startServer(config, { store: openMemoryStore() });
    const client = new ReeveClient(server.address);
    const work = { taskId: 't', idempotencyKey: 'k', actionKind: 'agent', executionTarget: ExecutionTarget.HOST };
    const { task } = await client.unary(tasks.submit, { ...work, argsForm: { case: 'argsJson', value: '{"n":1}' } });
    const key = { taskId: 't', idempotencyKey: 'hold' };
    await client.unary(tasks.transition, { ...key, intent: { case: 'suspend', value: {} } });
    await client.unary(tasks.cancel, { taskId: 't', requestId: 'stop', reason: { code: 'run.cancelled.user' } });
    await client.unary(tasks.resume, {
      taskId: 't',
      idempotencyKey: 'again',
      newGenerationId: 'g2',
      inputJson: '"go"',
    });
    const served = (await client.unary(tasks.listEvents, { taskId: 't' })).events.map((event) => ({
      shape: shape({ ...event, revision: Number(event.revision) }),
      payload: JSON.parse(event.payloadJson) as object,
      reason: event.reason?.code,
    }));
    client.close();
    await server.stop(0);

    const reeve = await openAuthority({ store: 'memory:' });
    const submitted = await reeve.submit({ kind: 'agent', key: 'k', taskId: 't', args: { n: 1 } });
    await reeve.transition('t', { type: 'suspend' }, { key: 'hold' });
    await reeve.cancel('t', { key: 'stop', reason: { code: 'run.cancelled.user' } });
    await reeve.resume('t', { key: 'again', newGenerationId: 'g2', input: 'go' });
    const told = (await all(reeve.events('t'))).map((event) => ({
      shape: shape(event),
      payload: event.payload as object,
      reason: event.reason?.code,
    }));
    await reeve.close();

    expect(submitted.task.applicationHash).toBe(task?.applicationHash);
    // Generation ids that the authority makes are the one thing that is by chance.
    const [, ...rest] = told;
    expect(rest).toEqual(served.slice(1));
    expect(told[0]?.shape).toEqual(served[0]?.shape);
  });

  it('remembers a key whichever door it came by', async () => {
    const store = fileOf('doors.db');
    const config = { ...loadConfig({ env: {} }), store, listen: '127.0.0.1:0', logLevel: 'silent' as const };
    const server = await startServer(config);
    const client = new ReeveClient(server.address);
    const work = { idempotencyKey: 'k', actionKind: 'agent', executionTarget: ExecutionTarget.HOST };
    const { task } = await client.unary(tasks.submit, work);
    const taskId = task?.taskId ?? '';
    const held = { taskId, idempotencyKey: 'hold', intent: { case: 'suspend' as const, value: {} } };
    const { transitionId } = await client.unary(tasks.transition, held);
    client.close();
    await server.stop(0);
    const reeve = await openAuthority({ store });
    expect(await reeve.submit({ kind: 'agent', key: 'k' })).toMatchObject({
      outcome: 'REPLAYED',
      task: { id: taskId },
    });
    const again = await reeve.transition(taskId, { type: 'suspend' }, { key: 'hold' });
    expect(again).toMatchObject({ replayed: true, fact: { transitionId } });
    await reeve.close();
  });
});

describe('opening', () => {
  it.each<[Parameters<typeof openAuthority>[0], RegExp]>([
    [{ store: 'postgres://x' }, /^store: .*sqlite:PATH/],
    [{ store: '' }, /^store: /],
    [{ store: 'memory:', kinds: ['no name'] }, /^kinds: action_kinds\[0\]/],
    [
      { store: 'memory:', kinds: [{ name: 'c', argsSchema: { requird: [] } }] },
      /^kinds: action_kinds\[0\] c: args_schema/,
    ],
    [{ store: 'memory:', capabilities: { 'a b': 'affinity' } }, /^capabilities: "a b"/],
    [{ store: 'memory:', actor: { type: 'reaper' as 'producer', id: '' } }, /^actor.type/],
  ])('refuses %j', async (options, message) => {
    const refused = await refusalOf(openAuthority(options));
    expect(refused.reason).toBe('MALFORMED');
    expect(refused.message).toMatch(message);
  });

  it('says why a file cannot be opened', async () => {
    const path = join(folder, 'not-a-database.db');
    writeFileSync(
      path,
      'this is no database, and long enough to be seen as something else than an empty one\n'.repeat(100),
    );
    expect(await refusalOf(openAuthority({ store: `sqlite:${path}` }))).toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  });
});

describe('a store that must not be used any more', () => {
  it('is told once, to the program, and what was asked meanwhile has no known outcome', async () => {
    const probe = probeStore(openMemoryStore());
    const fatal = new Signal<unknown>();
    const options = { store: 'memory:', onFatal: (error: unknown) => fatal.reach(error) };
    const reeve = await openEmbedded(options, { store: probe.store });
    probe.failNext('fatal');
    const refused = await refusalOf(reeve.submit({ kind: 'agent', key: 'k' }));
    expect(refused).toMatchObject({ reason: 'OUTCOME_UNKNOWN', retryable: true });
    expect(await fatal.reached).toMatchObject({ failure: 'fatal' });
    expect((await refusalOf(reeve.submit({ kind: 'agent', key: 'k' }))).reason).toBe('STORE_UNAVAILABLE');
    await reeve.close();
  });

  it('that only does not answer for a while is safe to ask again with the same key', async () => {
    const probe = probeStore(openMemoryStore());
    const reeve = await openEmbedded({ store: 'memory:' }, { store: probe.store });
    probe.failNext('unavailable');
    const refused = await refusalOf(reeve.submit({ kind: 'agent', key: 'k' }));
    expect(refused).toMatchObject({ reason: 'STORE_UNAVAILABLE', retryable: true });
    expect(await reeve.submit({ kind: 'agent', key: 'k' })).toMatchObject({ outcome: 'CREATED' });
    await reeve.close();
  });
});
