/**
 * The conformance kit can fail: a worker that breaks the contract in one way fails the cases about that, for the
 * reason that is so, and passes the others.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CASES } from '../../src/conformance/catalog.js';
import { runCases } from '../../src/conformance/run-cases.js';
import { Cli, jsonLines } from '../cli/cli-rig.js';

const WORKER = fileURLToPath(new URL('tampered-worker.mjs', import.meta.url));
/** For a case that waits for what the worker never does; and for a process to start on a busy machine. */
const LIMITS = { timeoutMs: 6_000, startTimeoutMs: 60_000 };

function commandOf(way: string): string {
  return `REEVE_TAMPER=${way} exec '${process.execPath}' '${WORKER}'`;
}

async function reasonsOf(way: string, ids: readonly string[]): Promise<Record<string, string>> {
  const cases = CASES.filter(({ id }) => ids.includes(id));
  const results = await runCases(cases, { command: commandOf(way), ...LIMITS, parallel: 3 });
  return Object.fromEntries(results.map(({ id, outcome, reason }) => [id, `${outcome} ${reason}`.trim()]));
}

// At once: most of them wait for what never comes.
describe.concurrent('a worker that', () => {
  it.each([
    ['skips-a-number', { 'one-claim': /failed .*number 4 .*the next number is 3/, hello: /failed/ }],
    ['no-receipts', { cancel: /failed .*the receipt that the cancel was delivered/, 'one-claim': /^passed$/ }],
    ['no-heartbeats', { heartbeats: /failed .*a heartbeat that names the claim/, 'one-claim': /^passed$/ }],
    ['forgets-its-session', { reattach: /failed .*opened a new session/, silence: /failed/, cancel: /^passed$/ }],
    [
      'says-nothing-again',
      { 'cancel-again': /failed/, 'event-gap': /failed .*number 2 once more/, failure: /^passed$/ },
    ],
    ['repeats-without-pause', { 'event-gap-again': /failed .*7 times more within \d+ ms/, 'event-gap': /^passed$/ }],
    ['deaf-to-losses', { 'lease-lost': /failed .*nothing more is to be said/, 'lease-lost-verdict': /^passed$/ }],
    [
      'deaf-to-refusals',
      { 'lease-lost-verdict': /failed/, 'ending-refused': /failed .*another ending/, cancel: /^passed$/ },
    ],
    [
      'says-no-frames',
      { 'one-claim': /failed sent 3 bytes after frame \d+ that are no WorkRequest: /, hello: /failed/ },
    ],
    ['runs-any-kind', { 'no-handler': /failed .*ended with completed/, failure: /^passed$/ }],
    ['falls-over-news', { 'unknown-frame': /failed .*the worker ended \(3\)/, 'one-claim': /^passed$/ }],
    ['believes-its-clock', { 'clock-behind': /failed/, 'clock-ahead': /^passed$/ }],
    ['holds-without-bound', { 'slow-reader': /failed .*memory grew by \d+ MiB/, 'frame-size': /^passed$/ }],
    [
      'knows-no-task-again',
      { 'deaf-handler': /failed .*a second time while the first handler had not stopped/, 'session-gone': /^passed$/ },
    ],
    ['keeps-what-waits', { 'leave-children': /failed .*the release of its claim/, 'leave-finishing': /^passed$/ }],
    ['takes-no-leave', { 'leave-idle': /failed .*(after SIGTERM|process)/, 'one-claim': /^passed$/ }],
  ])('%s', { timeout: 150_000 }, async (way, expected) => {
    const reasons = await reasonsOf(way, Object.keys(expected));
    for (const [id, reason] of Object.entries(expected)) expect(reasons[id], id).toMatch(reason);
  });

  it('does not start at all', { timeout: 20_000 }, async () => {
    const cases = CASES.filter(({ id }) => id === 'hello');
    const command = 'echo no such worker >&2; exit 9';
    const [result] = await runCases(cases, { command, ...LIMITS, parallel: 1 });
    expect(result).toMatchObject({ outcome: 'failed', workerOutput: 'no such worker' });
    expect(result?.reason).toContain('the worker ended (9)');
  });
});

it('a program that never says Hello is waited for as long as a start may take, whatever a case may take', async () => {
  const cases = CASES.filter(({ id }) => id === 'hello');
  const limits = { startTimeoutMs: 700, timeoutMs: 60_000 };
  const [result] = await runCases(cases, { command: 'exec sleep 60', ...limits, parallel: 1 });
  expect(result).toMatchObject({ outcome: 'failed', reason: 'waited 0.7 s for a stream with its Hello' });
});

describe('reeve conformance', () => {
  const conformance = (...args: string[]) => Cli.run(['conformance', ...args]);

  it('exits with 1 when a case fails, and shows why', async () => {
    const cases = ['--case', 'no-handler', '--case', 'failure'];
    const { end, out } = await conformance('--worker', commandOf('runs-any-kind'), ...cases);
    expect(out).toMatch(/^no-handler +failed +\d+ +a claim of an unknown kind ended with completed$/m);
    expect(out).toMatch(/^failure +passed /m);
    expect(out).toMatch(/^1 passed, 1 failed, 0 skipped$/m);
    expect(end).toBe(1);
  });

  it('exits with 0 when all pass, and tells machines in JSON', async () => {
    const { end, out } = await conformance('--worker', commandOf('nothing'), '--case', 'one-claim', '--json');
    expect(jsonLines(out)).toMatchObject([{ id: 'one-claim', outcome: 'passed', reason: '' }]);
    expect(end).toBe(0);
  });

  it('lists its cases, and knows no others', async () => {
    const { out } = await conformance('--list', '--json');
    expect(jsonLines(out).map(({ id }) => id)).toEqual(CASES.map(({ id }) => id));
    const { end, err } = await conformance('--worker', 'true', '--case', 'nonsense');
    expect(err).toContain('no such case: nonsense');
    expect(end).toBe(2);
    expect((await conformance()).end).toBe(2);
  });
});
