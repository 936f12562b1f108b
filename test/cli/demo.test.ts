// The demo proves itself; its exit code is the proof.

import { afterAll, expect, it } from 'vitest';
import { Cli } from './cli-rig.js';

afterAll(() => {
  Cli.killAll();
});

it('the demo ends well, with its timeline and its table', { timeout: 120_000 }, async () => {
  const { end, out, err } = await Cli.run(['demo']);
  expect({ end, err }).toEqual({ end: 0, err: '' });
  expect(out).toMatch(/refused: IDEMPOTENCY_CONFLICT.*\/args\/path/);
  expect(out).toMatch(/kill -9 \d+ \(worker-\d\)/);
  expect(out).toContain('every task ended as it should');
  expect(out).toMatch(/slow +cancelled +1/);
  expect(out).toMatch(/handover +completed +2/);
  expect(out).toMatch(/grpcurl -plaintext 127\.0\.0\.1:\d+ list/);
});

it('with --stay it keeps the service up until a signal', { timeout: 120_000 }, async () => {
  const demo = Cli.start(['demo', '--stay', '--workers', '2']);
  const line = await demo.line(/stays up on/);
  const address = /127\.0\.0\.1:\d+/.exec(line)?.[0] ?? '';
  const { end, out } = await Cli.run(['list', '--address', address, '--status', 'completed', '--limit', '1', '--json']);
  expect(end).toBe(0);
  expect(out).toContain('TASK_STATUS_COMPLETED');
  demo.signal('SIGINT');
  expect(await demo.finished).toMatchObject({ end: 0, err: '' });
});
