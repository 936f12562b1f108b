// The service as a process: how it starts, what it says, how it ends.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPTIONS } from '../../src/server/options.js';
import { Cli, parsed, startService } from './cli-rig.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-serve-'));
});

afterAll(() => {
  Cli.killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe('serve', () => {
  it('lists every option with its variable, its key and its default', async () => {
    const { out, end } = await Cli.run(['serve', '--help']);
    expect(end).toBe(0);
    const text = out.replace(/\s+/g, ' ');
    for (const { flag, env, yaml, default: standard } of Object.values(OPTIONS)) {
      expect(text).toContain(`${flag} `);
      expect(text).toContain(`(default: ${standard === '' ? 'none' : standard}; ${env}; ${yaml})`);
    }
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('drains on %s', async (signal) => {
    const service = await startService();
    service.process.signal(signal);
    const { end, err, out } = await service.process.finished;
    expect({ end, err }).toEqual({ end: 0, err: '' });
    expect(out).toContain('"msg":"stopped"');
    await service.close();
  });

  it('ends at once on a second signal', async () => {
    // A worker that stays attached makes the drain wait for its whole grace.
    const service = await startService('--drain-grace', '1h');
    const worker = Cli.start(['work', '--address', service.address, '--kind', 'agent', '--exec', 'true']);
    await worker.line(/attached/);
    service.process.signal('SIGTERM');
    await service.process.line(/"msg":"stopping"/);
    service.process.signal('SIGTERM');
    expect((await service.process.finished).end).toBe(130);
    worker.signal('SIGKILL');
    await service.close();
  });

  it('says that its address is taken, and nothing else', async () => {
    const service = await startService();
    const second = await Cli.run([
      'serve',
      '--listen',
      service.address,
      '--store',
      `sqlite:${join(folder, 'second.db')}`,
    ]);
    expect(second.end).toBe(1);
    expect(second.err).toBe(`reeve: cannot listen on ${service.address}: the port is in use\n`);
    service.process.signal('SIGTERM');
    await service.close();
  });

  it('takes options from flags, variables and a file, in this order', async () => {
    const file = join(folder, 'reeve.yaml');
    writeFileSync(file, `listen: 127.0.0.1:1\nstore: sqlite:${join(folder, 'a.db')}\nlog_level: error\n`);
    const env = { REEVE_CONFIG: file, REEVE_LOG_LEVEL: 'info', REEVE_LISTEN: '127.0.0.1:2' };
    const server = Cli.start(['serve', '--listen', '127.0.0.1:0'], env);
    expect(parsed(await server.line(/"msg":"ready"/))['address']).toMatch(/^127\.0\.0\.1:\d{4,}$/);
    server.signal('SIGTERM');
    expect((await server.finished).end).toBe(0);
  });

  it.each([
    [['--listen', 'nowhere'], 2],
    [['--accept-timeout', '5'], 2],
    [['--store', 'memory:'], 2],
    [['--config', '/nowhere/reeve.yaml'], 2],
    [['--store', 'sqlite:/nowhere/at/all/reeve.db'], 1],
    [['--unheard-of'], 2],
  ])('with %j exits with %d and one line', async (flags, code) => {
    const { end, err } = await Cli.run(['serve', '--store', `sqlite:${join(folder, 'b.db')}`, ...flags]);
    expect(end).toBe(code);
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).toMatch(/^reeve: /);
  });
});

describe('dev', () => {
  it.each([[[]], [['--sqlite']]])('runs with %j and says how to talk to it', async (flags) => {
    const server = Cli.start(['dev', '--listen', '127.0.0.1:0', ...flags]);
    const line = await server.line(/listening on/);
    const address = /127\.0\.0\.1:\d+/.exec(line)?.[0] ?? '';
    await server.line(new RegExp(`grpcurl -plaintext ${address} list`));
    const { end } = await Cli.run(['submit', 'agent', '--address', address]);
    expect(end).toBe(0);
    server.signal('SIGINT');
    expect(await server.finished).toMatchObject({ end: 0, err: '' });
  });
});
