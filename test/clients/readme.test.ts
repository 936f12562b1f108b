/**
 * The README's lines work as pasted: each marked block runs in bash, against a server.
 * grpcurl is the real program; without it this fails in CI and is skipped loudly elsewhere.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServerProcess } from '../chaos/server-process.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const DEFAULT_ADDRESS = '127.0.0.1:7450';
const folder = mkdtempSync(join(tmpdir(), 'reeve-readme-'));
const server = new ServerProcess(join(folder, 'reeve.db'));
const run = promisify(execFile);
/** `go install` puts grpcurl into ~/go/bin, which not every PATH has; `reeve` stands in for what `npm link` makes. */
const PATH = [folder, process.env['PATH'] ?? '', join(homedir(), 'go', 'bin')].join(delimiter);

function block(name: string): string {
  const found = new RegExp(`<!-- tour:${name} -->\\s*\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(README)?.[1];
  if (found === undefined) throw new Error(`README has no block tour:${name}`);
  return found;
}

/** Runs the block; every command in it has to succeed. */
async function pasted(name: string): Promise<string> {
  // To the letter but for the port: whoever runs the tests may have a server on the default one.
  const lines = block(name).replaceAll(DEFAULT_ADDRESS, server.address);
  const script = `set -e -o pipefail\nset -m\n${lines}`;
  const env = { ...process.env, PATH, REEVE_ADDRESS: server.address };
  const { stdout } = await run('bash', ['-c', script], { cwd: ROOT, env, timeout: 60_000 });
  return stdout;
}

beforeAll(async () => {
  const shim = join(folder, 'reeve');
  writeFileSync(shim, `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, 'dist/cli/main.js')}" "$@"\n`);
  chmodSync(shim, 0o755);
  await server.start();
});

afterAll(async () => {
  await server.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

const hasGrpcurl = spawnSync('grpcurl', ['--version'], { env: { ...process.env, PATH } }).status === 0;
const mustHaveGrpcurl = process.env['REEVE_CI'] !== undefined;
if (!hasGrpcurl && !mustHaveGrpcurl) console.warn('grpcurl is not installed: its lines of the README are not tried');

describe('the lines of the README', () => {
  it('submit, replay, get, list', { timeout: 60_000 }, async () => {
    const said = await pasted('cli');
    expect(said).toMatch(/order-17/);
    expect(said).toMatch(/queued/);
  });

  it('a shell script works', { timeout: 60_000 }, async () => {
    const said = await pasted('worker');
    expect(said).toMatch(/task\.completed/);
    expect(said).toContain('"counted":3');
  });

  it.runIf(hasGrpcurl || mustHaveGrpcurl)('a worker by hand, without a stream', { timeout: 60_000 }, async () => {
    const said = await pasted('unary');
    expect(said).toMatch(/"judgedThrough": "2"/);
    expect(said).toMatch(/"judgedThrough": "3"/);
    expect(said).toMatch(/"status": "TASK_STATUS_COMPLETED"/);
  });

  it.runIf(hasGrpcurl || mustHaveGrpcurl)('grpcurl, with nothing but the address', { timeout: 60_000 }, async () => {
    const said = await pasted('grpcurl');
    expect(said).toContain('reeve.v1.TaskService');
    expect(said).toContain('SubmitRequest');
    expect(said).toMatch(/"outcome": "SUBMIT_OUTCOME_CREATED"/);
    expect(said).toMatch(/"state": "CANCEL_STATE_CANCELLED"/);
    expect(said).toContain('task.cancel.requested');
  });
});
