// The one table from refusals to statuses, held against the contract's own comments.

import { readFileSync } from 'node:fs';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { Code } from '../../src/gen/google/rpc/code_pb.js';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.js';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { type RefusalReason, refuse } from '../../src/kernel/refusal.js';
import { ERROR_TABLE } from '../../src/wire/error-table.js';
import { refusalMessage } from '../../src/wire/refusal-message.js';
import { statusOf } from '../../src/wire/status-details.js';

const proto = readFileSync('proto/reeve/v1/error_reason.proto', 'utf8');

/** Per reason the code and whether RetryInfo follows, as its comment says. */
function documented(): Map<string, { code: string; retry: boolean }> {
  const rules = new Map<string, { code: string; retry: boolean }>();
  let comment = '';
  for (const line of proto.split('\n')) {
    const value = /^ {2}ERROR_REASON_([A-Z_]+) = /.exec(line)?.[1];
    const rule = /^([A-Z_]+)(, with RetryInfo)?\./.exec(comment);
    if (value !== undefined) rules.set(value, { code: rule?.[1] ?? '', retry: rule?.[2] !== undefined });
    comment = line.startsWith('  // ') ? comment + line.slice(5) : '';
  }
  return rules;
}

const reasons = Object.keys(ERROR_TABLE) as RefusalReason[];

describe('the error table', () => {
  it.each(reasons)('%s is what the contract says', (reason) => {
    const rule = ERROR_TABLE[reason];
    expect(ErrorReason[rule.reason]).toBe(reason);
    expect(documented().get(reason)).toEqual({ code: Code[rule.code], retry: rule.retryAfterMs !== undefined });
  });

  it('tells a status and a Refusal alike', () => {
    const refusal = refuse('OVERLOADED', 'later', { resource: 'commits', retry_after_ms: '1500' });
    const status = statusOf(refusal);
    const message = refusalMessage(refusal);
    expect(message).toMatchObject({ grpcCode: status.code, message: 'later', metadata: { resource: 'commits' } });
    expect(message.retryAfter).toMatchObject({ seconds: 1n, nanos: 500_000_000 });
    expect(message.metadata).toEqual({ resource: 'commits' });
  });

  it('keeps what travels in trailers below what every client takes', () => {
    const pointers = JSON.stringify(Array.from({ length: 32 }, (_, index) => `/${'x'.repeat(250)}${index}`));
    const conflict = statusOf(
      refuse('IDEMPOTENCY_CONFLICT', 'm'.repeat(5_000), { pointers, task_id: 'y'.repeat(5_000) }),
    );
    expect(conflict.details.length).toBeLessThan(6_000);
    const info = fromBinary(StatusSchema, conflict.details).details.map((any) => anyUnpack(any, ErrorInfoSchema))[0];
    expect(info?.metadata['truncated']).toBe('true');
    expect(JSON.parse(info?.metadata['pointers'] ?? '')).not.toHaveLength(0);
  });

  it('drops whole violations of args, so that those that are told can be read', () => {
    const violation = { pointer: `/${'x'.repeat(255)}`, detail: 'must be '.repeat(25) };
    const violations = JSON.stringify(Array.from({ length: 8 }, () => violation));
    const { metadata } = refusalMessage(refuse('MALFORMED', 'm', { field: 'args_json', violations }));
    const told = JSON.parse(metadata?.['violations'] ?? '') as unknown[];
    expect(told.length).toBeGreaterThan(2);
    expect(told[0]).toEqual(violation);
    expect(metadata?.['truncated']).toBe('true');
  });

  it('never cuts a character in half', () => {
    const { message } = statusOf(refuse('MALFORMED', `${'x'.repeat(511)}😀`, { field: 'f' }));
    expect(() => encodeURI(message)).not.toThrow();
  });
});
