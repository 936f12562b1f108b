/**
 * The Go worker and client work: stubs by the documented command, against a real server, and by the kit. Without Go
 * this is skipped loudly, and fails in CI.
 */
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFORMANCE_TIMEOUT_MS, expectConformance } from '../conformance/conforming.js';
import { startFixture } from '../server/server-fixture.js';
import { ExampleProcess } from './example-process.js';
import { expectGreeting } from './greeting-example.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLES = join(ROOT, 'examples/go');
/** What go.mod asks for; an older Go takes go1.19.mod. */
const CURRENT_GO = [1, 26] as const;
/** The first build on a machine fetches and compiles grpc. */
const BUILD_TIMEOUT_MS = 600_000;

const version = spawnSync('go', ['env', 'GOVERSION'], { cwd: tmpdir(), encoding: 'utf8' });
const hasGo = version.status === 0;
const triesGo = hasGo || process.env['REEVE_CI'] !== undefined;
if (!triesGo) console.warn('go is not installed: the Go examples are not tried');

const folder = mkdtempSync(join(tmpdir(), 'reeve-go-'));
const run = promisify(execFile);

function moduleFlags(): readonly string[] {
  const [, major = '0', minor = '0'] = /^go(\d+)\.(\d+)/.exec(version.stdout) ?? [];
  const isCurrent = Number(major) > CURRENT_GO[0] || Number(minor) >= CURRENT_GO[1];
  return isCurrent ? [] : ['-modfile=go1.19.mod'];
}

describe.runIf(triesGo)('Go', () => {
  beforeAll(async () => {
    const isOurs = (path: string) => path !== join(EXAMPLES, 'gen');
    cpSync(EXAMPLES, folder, { recursive: true, filter: isOurs });
    await run('bash', ['scripts/stubs-go.sh', join(folder, 'gen')], { cwd: ROOT });
    // Trimmed paths, so that the next run finds what this one compiled.
    await run('go', ['build', '-trimpath', ...moduleFlags(), '-o', join(folder, 'bin/'), './...'], { cwd: folder });
  }, BUILD_TIMEOUT_MS);
  afterAll(() => {
    ExampleProcess.killAll();
    rmSync(folder, { recursive: true, force: true });
  });

  it('the examples are formatted', async () => {
    const { stdout } = await run('gofmt', ['-l', 'client', 'conformance-worker', 'reeveworker', 'worker'], {
      cwd: EXAMPLES,
    });
    expect(stdout).toBe('');
  });

  it('the worker does what needs no server to be seen', { timeout: 300_000 }, async () => {
    await run('go', ['test', '-trimpath', ...moduleFlags(), './...'], { cwd: folder });
  });

  it('the worker greets, the client submits, follows and cancels', { timeout: 60_000 }, async () => {
    const fixture = await startFixture();
    try {
      const program = (name: string) => ({ command: join(folder, 'bin', name), args: [] });
      await expectGreeting(fixture, program('worker'), program('client'));
    } finally {
      await fixture.close();
    }
  });

  it('the worker conforms', { timeout: CONFORMANCE_TIMEOUT_MS }, async () => {
    await expectConformance(`exec '${join(folder, 'bin/conformance-worker')}'`);
  });
});
