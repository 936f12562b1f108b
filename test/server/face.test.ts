// What any gRPC tool meets: health, reflection of both versions, unknown methods, the limits of the wire.

import * as grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkHealth, ReeveClient, refusal, refusedOf, tasks, workers } from './reeve-client.js';
import { type Fixture, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const health = (service: string): Promise<unknown> => checkHealth(fixture.client, service);

describe('health', () => {
  it.each(['', 'reeve.v1.TaskService', 'reeve.v1.WorkerService', 'reeve.v1.AdminService'])(
    'serves %j',
    async (service) => {
      expect(await health(service)).toMatchObject({ status: 'SERVING' });
    },
  );

  it('does not know other names', async () => {
    expect(refusedOf(await health('x').catch((error: unknown) => error))).toMatchObject({ code: 5 });
  });
});

describe('reflection', () => {
  const protos = join(dirname(createRequire(import.meta.url).resolve('@grpc/reflection')), '../proto');

  it.each(['v1', 'v1alpha'])('%s lists the services and describes them with everything they need', async (version) => {
    const definition = loadSync(`grpc/reflection/${version}/reflection.proto`, {
      includeDirs: [protos],
      longs: String,
    });
    const service = definition[`grpc.reflection.${version}.ServerReflection`];
    const method = (service as grpc.ServiceDefinition)['ServerReflectionInfo'];
    if (method === undefined) throw new Error('no such method');
    const ask = (request: object): Promise<Record<string, never>> =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = method;
        const call = fixture.client.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
        call.on('data', resolve);
        call.on('error', reject);
        call.write(request);
        call.end();
      });
    const listed = await ask({ listServices: '*' });
    expect(JSON.stringify(listed)).toContain('reeve.v1.TaskService');
    expect(JSON.stringify(listed)).toContain('reeve.v1.WorkerService');
    expect(JSON.stringify(listed)).toContain('grpc.health.v1.Health');
    const described = await ask({ fileContainingSymbol: 'reeve.v1.TaskService.Submit' });
    const files = described['fileDescriptorResponse'] as unknown as { fileDescriptorProto: Uint8Array[] };
    const names = files.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
    for (const name of ['reeve/v1/task_service.proto', 'reeve/v1/task.proto', 'google/protobuf/struct.proto']) {
      expect(names).toContain(name);
    }
  });
});

describe('limits', () => {
  it('refuse a message above 2 MiB', async () => {
    const refused = await refusal(fixture.client.unaryBytes(tasks.submit, new Uint8Array(2_200_000)));
    expect(refused.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
  });

  it('let a connection have 128 streams and queue the others', async () => {
    const client = new ReeveClient(fixture.server.address, { 'grpc.use_local_subchannel_pool': 1 });
    const streams = Array.from({ length: 128 }, () => client.bidi(workers.work));
    for (const stream of streams) {
      stream.send({ frameId: 1n, frame: { case: 'hello', value: { workerName: 'w', actionKinds: ['*'] } } });
    }
    for (const stream of streams) expect((await stream.next())?.frame.case).toBe('welcome');
    const late = await refusal(client.unary(tasks.list, {}, { deadline: Date.now() + 300 }));
    expect(late.code).toBe(grpc.status.DEADLINE_EXCEEDED);
    streams[0]?.half();
    expect(await client.unary(tasks.list, {}, { deadline: Date.now() + 5_000 })).toBeDefined();
    client.close();
  });
});
