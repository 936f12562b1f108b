/**
 * `reeve health`: ask grpc.health.v1 whether the service takes calls. For HEALTHCHECK and scripts: 0 serving, 1 not,
 * whatever the cause.
 */
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';
import { type Command, Option } from 'commander';
import { type CommandHost, optionsOf } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { parseDuration } from '../options/duration.js';

const CHECK = '/grpc.health.v1.Health/Check';
/** HealthCheckResponse.ServingStatus, by number. */
const SERVING_STATUS = ['unknown', 'serving', 'not_serving', 'service_unknown'];
const SERVING = 1;
const STATUS_FIELD = 1;

interface HealthOptions {
  readonly within: number;
}

export function addHealth(program: Command, host: CommandHost): void {
  const command = program
    .command('health')
    .summary('ask whether the service takes calls')
    .description('Exits with 0 when the service says that it is serving, else with 1.')
    .addOption(
      new Option('--within <duration>', 'how long to wait for an answer').argParser(parseDuration).default(2_000, '2s'),
    );
  command.action(async () => {
    const { address, within, json } = optionsOf<HealthOptions>(command);
    const status = await checkHealth(address, within);
    host.terminal.line(json ? JSON.stringify({ address, status }) : `${address} ${status}`);
    host.end(status === SERVING_STATUS[SERVING] ? EXIT.ok : EXIT.failed);
  });
}

/** A word of the protocol, or `unreachable`. Never throws. */
export async function checkHealth(address: string, withinMs: number): Promise<string> {
  const client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  try {
    return await new Promise((resolve) => {
      client.makeUnaryRequest(
        CHECK,
        // HealthCheckRequest without a service name, which asks about the server as a whole, has no bytes.
        () => Buffer.alloc(0),
        readStatus,
        undefined,
        { deadline: Date.now() + withinMs },
        (error, status) => resolve(error === null && status !== undefined ? status : 'unreachable'),
      );
    });
  } finally {
    client.close();
  }
}

function readStatus(bytes: Uint8Array): string {
  const reader = new BinaryReader(bytes);
  let status = 0;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === STATUS_FIELD) status = reader.int32();
    else reader.skip(wireType);
  }
  return SERVING_STATUS[status] ?? String(status);
}
