// SubmitStream through a real server: many in flight, the half-close, what breaks a stream and what does not.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExecutionTarget, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { type SubmitVerdict, SubmitOutcome } from '../../src/gen/reeve/v1/task_service_pb.js';
import { MAX_IN_FLIGHT } from '../../src/services/submit-stream.js';
import { type Duplex, refusedOf, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const item = (idempotencyKey: string, more: object = {}) => ({
  idempotencyKey,
  actionKind: 'agent',
  executionTarget: ExecutionTarget.HOST,
  ...more,
});

function verdictsOf(stream: Duplex<typeof tasks.submitStream>): SubmitVerdict[] {
  return stream.messages.flatMap((message) => message.verdicts);
}

describe('SubmitStream', () => {
  it('answers everything that was in flight after the half-close and ends OK', async () => {
    const stream = fixture.client.bidi(tasks.submitStream);
    const keys = Array.from({ length: MAX_IN_FLIGHT * 2 + 100 }, () => freshKey());
    for (let at = 0; at < keys.length; at += 500) {
      stream.send({ submissions: keys.slice(at, at + 500).map((key) => item(key)) });
    }
    stream.half();
    expect(await stream.ended).toBeNull();
    const verdicts = verdictsOf(stream);
    expect(new Set(verdicts.map((verdict) => verdict.idempotencyKey))).toEqual(new Set(keys));
    expect(verdicts).toHaveLength(keys.length);
    expect(verdicts.every((verdict) => verdict.verdict.case === 'accepted')).toBe(true);
    // The answers of one commit leave together.
    expect(stream.messages.length).toBeLessThan(keys.length / 10);
  });

  it('gives each submission its own verdict, in NAME view unless asked otherwise', async () => {
    const stream = fixture.client.bidi(tasks.submitStream);
    const [first, second, third] = [freshKey(), freshKey(), freshKey()];
    stream.send({
      frameId: 7n,
      submissions: [
        item(first, { namespace: 'stream' }),
        item(second, { actionKind: 'no such' }),
        item(third, { view: TaskView.FULL, argsForm: { case: 'argsJson', value: '{"ü":"€"}' } }),
      ],
    });
    stream.send({ submissions: [] });
    stream.half();
    expect(await stream.ended).toBeNull();
    const byKey = new Map(verdictsOf(stream).map((verdict) => [verdict.idempotencyKey, verdict]));
    const created = byKey.get(first);
    expect(created).toMatchObject({ namespace: 'stream' });
    expect(created?.verdict.value).toMatchObject({
      outcome: SubmitOutcome.CREATED,
      task: { namespace: 'stream', idempotencyKey: first, queue: '', revision: 1n, generation: { number: 1 } },
      event: { eventNumber: 1n },
    });
    expect(byKey.get(second)?.verdict.value).toMatchObject({ grpcCode: 3, metadata: { field: 'action_kind' } });
    expect(byKey.get(third)?.verdict.value).toMatchObject({
      task: { application: { argsJson: '{"ü":"€"}' }, admission: { source: 2 } },
    });
  });

  it('replays a known key with its first event', async () => {
    const key = freshKey();
    const first = await fixture.client.unary(tasks.submit, item(key));
    const stream = fixture.client.bidi(tasks.submitStream);
    stream.send({ submissions: [item(key), item(key, { actionKind: 'flow' })] });
    stream.half();
    expect(await stream.ended).toBeNull();
    const [replayed, conflict] = verdictsOf(stream).sort((left) => (left.verdict.case === 'accepted' ? -1 : 1));
    expect(replayed?.verdict.value).toMatchObject({ outcome: SubmitOutcome.REPLAYED, event: first.event });
    expect(conflict?.verdict.value).toMatchObject({ grpcCode: 6 });
  });

  it('ends with MALFORMED on a frame of more than 1,000', async () => {
    const stream = fixture.client.bidi(tasks.submitStream);
    stream.send({ submissions: Array.from({ length: 1_001 }, () => item(freshKey())) });
    const refused = refusedOf(await stream.ended);
    expect(refused).toMatchObject({ code: 3, reason: 'MALFORMED', metadata: { field: 'submissions' } });
  });

  it('leaves what a cancelled client had in flight admitted or not, and goes on for others', async () => {
    const stream = fixture.client.bidi(tasks.submitStream);
    const keys = Array.from({ length: 500 }, () => freshKey());
    stream.send({ submissions: keys.map((key) => item(key)) });
    await stream.next();
    stream.cancel();
    expect(refusedOf(await stream.ended)).toMatchObject({ code: 1 });
    const again = fixture.client.bidi(tasks.submitStream);
    again.send({ submissions: keys.map((key) => item(key)) });
    again.half();
    expect(await again.ended).toBeNull();
    expect(verdictsOf(again)).toHaveLength(keys.length);
  });

  it('loses nothing for a client that sends far more than a window before it reads', async () => {
    const stream = fixture.client.bidi(tasks.submitStream);
    stream.call.pause();
    const args = JSON.stringify({ text: 'x'.repeat(10_000) });
    const total = 12_000;
    const keys = Array.from({ length: total }, () => freshKey());
    for (let at = 0; at < total; at += 100) {
      const submissions = keys
        .slice(at, at + 100)
        .map((key) => item(key, { argsForm: { case: 'argsJson', value: args } }));
      stream.send({ submissions, view: TaskView.FULL });
    }
    stream.half();
    stream.call.resume();
    expect(await stream.ended).toBeNull();
    expect(new Set(verdictsOf(stream).map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set(keys));
  });
});
