// Names that callers choose: what is taken, defaulted, refused, and never trimmed.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  checkConcurrencyKey,
  checkIdempotencyKey,
  checkOperationKey,
  checkTaskId,
  resolveNamespace,
  resolveQueue,
} from '../../../src/kernel/admission/identifiers.js';
import type { AdmissionSource } from '../../../src/kernel/admission/identifiers.js';
import { exceedsUtf8Bytes } from '../../../src/kernel/admission/text-rules.js';

describe('task ids', () => {
  it.each(['a', '01890a5d-ac96-774b-bcce-b302099a8057', 'A.b_c:d-9', 'x'.repeat(128)])('%s is taken', (id) => {
    expect(checkTaskId(id)).toEqual({ ok: true, value: id });
  });
  it.each(['', 'x'.repeat(129), 'a~2', 'a b', 'a/b', 'é', 'a\n', '\na'])('%j is refused', (id) => {
    expect(checkTaskId(id)).toMatchObject({ ok: false, refusal: { reason: 'MALFORMED', field: 'task_id' } });
  });
});

describe('idempotency keys', () => {
  it.each(['a', 'order 17', 'a\u00a0b', 'Ünïcödé 😀', '{"a":1}', 'x'.repeat(255), 'é'.repeat(127), 'schedule', '~'])(
    '%j is taken as it is',
    (key) => {
      expect(checkIdempotencyKey(key, 'rpc')).toEqual({ ok: true, value: key });
    },
  );

  it.each<[string, string, RegExp]>([
    ['empty', '', /empty/],
    ['256 bytes', 'x'.repeat(256), /255 bytes/],
    ['256 bytes in 128 characters', 'é'.repeat(128), /255 bytes/],
    ['a leading space', ' a', /begin or end/],
    ['a trailing space', 'a ', /begin or end/],
    ['a no-break space at the end', 'a\u00a0', /begin or end/],
    ['an ideographic space at the start', '\u3000a', /begin or end/],
    ['a line separator at the end', 'a\u2028', /begin or end/],
    ['a byte order mark at the start', '\ufeffa', /begin or end/],
    ['only a space', ' ', /begin or end/],
    ['a tab', 'a\tb', /control/],
    ['a trailing newline', 'a\n', /control/],
    ['NUL', 'a\u0000', /control/],
    ['DEL', 'a\u007fb', /control/],
    ['a C1 control', 'a\u009fb', /control/],
    ['NEL', 'a\u0085', /control/],
    ['a lone high surrogate', 'a\ud800', /surrogate/],
    ['a lone low surrogate', '\udc00a', /surrogate/],
  ])('refused: %s', (_name, key, detail) => {
    const outcome = checkIdempotencyKey(key, 'rpc');
    expect(outcome).toMatchObject({ ok: false, refusal: { reason: 'MALFORMED', field: 'idempotency_key' } });
    expect(outcome.ok ? '' : outcome.refusal.detail).toMatch(detail);
    expect(checkOperationKey(key, 'request_id')).toMatchObject({ ok: false, refusal: { field: 'request_id' } });
  });

  it('keeps prefixes for their source', () => {
    const sources: AdmissionSource[] = ['rpc', 'stream', 'cli', 'schedule', 'aep', 'embedded'];
    const takers = (key: string): AdmissionSource[] => sources.filter((source) => checkIdempotencyKey(key, source).ok);
    expect(takers('schedule:s1:1700000000')).toEqual(['schedule']);
    expect(takers('aep:app:1')).toEqual(['aep']);
    expect(takers('Schedule:x')).toEqual(sources);
    expect(takers('plain')).toEqual(sources);
    expect(checkOperationKey('schedule:x', 'request_id').ok).toBe(true);
  });

  it('measures UTF-8 as Buffer does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat({ max: 30 }), (text, bytes) => {
        expect(exceedsUtf8Bytes(text, bytes)).toBe(Buffer.byteLength(text, 'utf8') > bytes);
      }),
    );
    for (const text of [
      '\u007f',
      '\u0080',
      '\u07ff',
      '\u0800',
      '\ud7ff',
      '\ue000',
      '\uffff',
      '\u{10000}',
      '\ud800\ud800',
    ]) {
      const bytes = Buffer.byteLength(text, 'utf8');
      expect(exceedsUtf8Bytes(text, bytes)).toBe(false);
      expect(exceedsUtf8Bytes(text, bytes - 1)).toBe(true);
    }
  });
});

describe('namespaces and queues', () => {
  it('default when empty', () => {
    expect(resolveNamespace('')).toEqual({ ok: true, value: 'default' });
    expect(resolveQueue('')).toEqual({ ok: true, value: 'default' });
  });
  it.each(['a', '9', 'team-a.b_c', 'x'.repeat(64)])('namespace %s', (name) => {
    expect(resolveNamespace(name)).toEqual({ ok: true, value: name });
  });
  it.each(['A', '-a', '.a', 'a/b', 'a:b', 'a b', 'x'.repeat(65), 'a\n'])('namespace %j is refused', (name) => {
    expect(resolveNamespace(name)).toMatchObject({ ok: false, refusal: { field: 'namespace' } });
  });
  it.each(['a', 'Mail:EU/west-1', 'x'.repeat(128)])('queue %s', (name) => {
    expect(resolveQueue(name)).toEqual({ ok: true, value: name });
  });
  it.each(['/a', ':a', 'a b', 'a~', 'é', 'x'.repeat(129), 'a\n'])('queue %j is refused', (name) => {
    expect(resolveQueue(name)).toMatchObject({ ok: false, refusal: { field: 'queue' } });
  });
});

describe('concurrency keys', () => {
  it('follow the rules of idempotency keys, without reserved prefixes', () => {
    expect(checkConcurrencyKey('schedule:repo/main')).toEqual({ ok: true, value: 'schedule:repo/main' });
    for (const key of ['', ' a', 'a\u0001', 'x'.repeat(256)]) {
      expect(checkConcurrencyKey(key)).toMatchObject({ ok: false, refusal: { field: 'concurrency_key' } });
    }
  });
});
