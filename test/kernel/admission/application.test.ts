// Normalising an application: hash vectors (docs/application-hash.md), the kind registry, every refusal with its field.

import { describe, expect, it } from 'vitest';

import { buildActionKindRegistry } from '../../../src/kernel/admission/action-kinds.js';
import type { ActionKindRegistry } from '../../../src/kernel/admission/action-kinds.js';
import { applicationFieldHashes, applicationHash } from '../../../src/kernel/admission/application-hash.js';
import { normaliseApplication } from '../../../src/kernel/admission/application.js';
import type { ApplicationInput } from '../../../src/kernel/admission/application.js';

const contentHash = `sha256:${'0'.repeat(63)}1`;

function registry(...kinds: string[]): ActionKindRegistry {
  const built = buildActionKindRegistry(kinds.map((kind) => ({ kind })));
  if (!built.ok) throw new Error(built.refusal.detail);
  return built.value;
}

function input(changes: Partial<ApplicationInput> = {}): ApplicationInput {
  return {
    actionKind: 'agent',
    args: { form: 'text', text: '{}' },
    executionTarget: 'host',
    requiredCapabilities: [],
    libraryRef: null,
    libraryContentHash: null,
    ...changes,
  };
}

function normalised(changes: Partial<ApplicationInput> = {}) {
  const outcome = normaliseApplication(input(changes), registry());
  if (!outcome.ok) throw new Error(`${outcome.refusal.field}: ${outcome.refusal.detail}`);
  return outcome;
}

function refusalOf(changes: Partial<ApplicationInput>, kinds: ActionKindRegistry = registry()) {
  const outcome = normaliseApplication(input(changes), kinds);
  return outcome.ok ? outcome.unfit : outcome.refusal;
}

describe('application hash vectors', () => {
  it('1: the smallest application', () => {
    expect(normalised().hash).toBe('sha256:e9fbbc06a8ae2fb7f287a62784a27870d0a9130f26e2f791d24dad48cfcc3c45');
  });

  it.each([
    ['in canonical spelling', '{"n":1,"prompt":"hi","temperature":0.1}', ['gpu', 'linux']],
    ['in another spelling', '{ "temperature": 0.10, "prompt": "h\\u0069", "n": 1e0 }', ['linux', 'gpu', 'linux']],
  ])('2: args and capabilities, %s', (_name, text, requiredCapabilities) => {
    const { application, hash } = normalised({ args: { form: 'text', text }, requiredCapabilities });
    expect(hash).toBe('sha256:a6f3141a72b038779b9b8e5f1d29b4a9d444694b6c36b4cedd3e5ab95c78f47e');
    expect(application.argsJson).toBe('{"n":1,"prompt":"hi","temperature":0.1}');
    expect(application.requiredCapabilities).toEqual(['gpu', 'linux']);
  });

  it('2: the same from a plain value, and its field hashes', () => {
    const { application, hash } = normalised({
      args: { form: 'value', value: { temperature: 0.1, prompt: 'hi', n: 1 } },
      requiredCapabilities: ['linux', 'gpu'],
    });
    expect(hash).toBe('sha256:a6f3141a72b038779b9b8e5f1d29b4a9d444694b6c36b4cedd3e5ab95c78f47e');
    expect(applicationFieldHashes(application)).toEqual({
      action_kind: 'sha256:7649b444a37e5ea51af536af65bdde29d549803a064bdd0707db6a00c9285673',
      args: 'sha256:f7983d1c9267cc7014f9b9137cf19043d311d86b6c6a6b48bd0d61b874e09c9b',
      execution_target: 'sha256:e62c1c090b46507d918567756c90b6547e348e779338fc6cf38a10de2b109e62',
      library_content_hash: 'sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b',
      library_ref: 'sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b',
      required_capabilities: 'sha256:f1190e0a86a96219ca85f4a57740cd7265c54df39b62c7375fe70e8bdcff96cf',
    });
  });

  it('3: a workflow with text outside ASCII', () => {
    const { application, hash } = normalised({
      actionKind: 'workflow',
      args: { form: 'text', text: '{"items":[1e2,true,null],"day":"\\u00c5land\\n\\"€\\" \\ud83d\\ude00"}' },
      executionTarget: 'local_worktree',
      libraryRef: 'daily-review@4',
      libraryContentHash: contentHash,
    });
    expect(hash).toBe('sha256:17115ea91f3cc00d7a5c2cbbbdfbc8e6dc8e852cd8795027f274c84a3bc781f7');
    expect(applicationHash(application)).toBe(hash);
  });

  it.each(['play', 'playbook'])('4: %s is play', (actionKind) => {
    const { application, hash } = normalised({ actionKind });
    expect(application.actionKind).toBe('play');
    expect(hash).toBe('sha256:0a4d09ff5261968dce841f24712c326849248d034eb1f8bb60c3f2b174d176b2');
  });

  it('takes the empty text of absent references for null', () => {
    expect(normalised({ libraryRef: '', libraryContentHash: '' })).toEqual(normalised());
  });
});

describe('action kinds', () => {
  it.each(['agent', 'flow', 'fanout', 'play', 'flow_yaml'])('%s is built in', (actionKind) => {
    expect(refusalOf({ actionKind })).toBeNull();
  });

  it('refuses what is not registered, and takes it once it is', () => {
    const expected = { reason: 'ACTION_KIND_UNREGISTERED', field: 'action_kind' };
    expect(refusalOf({ actionKind: 'crawl' })).toMatchObject(expected);
    expect(refusalOf({ actionKind: 'Agent' })).toMatchObject(expected);
    expect(refusalOf({ actionKind: 'toString' })).toMatchObject(expected);
    expect(refusalOf({ actionKind: 'crawl' }, registry('crawl'))).toBeNull();
  });

  it.each(['', '9lives', 'a b', 'a\n', 'é', `a${'b'.repeat(128)}`])('%j is no name', (actionKind) => {
    expect(refusalOf({ actionKind })).toMatchObject({ reason: 'MALFORMED', field: 'action_kind' });
  });

  describe('that judge their args', () => {
    const judging = (allowEmptyArgs?: boolean) => {
      const checkArgs = (json: string) =>
        json.includes('prompt') ? null : { detail: 'is required', pointer: '/prompt' };
      const built = buildActionKindRegistry([
        { kind: 'agent', checkArgs, ...(allowEmptyArgs === undefined ? {} : { allowEmptyArgs }) },
      ]);
      if (!built.ok) throw new Error(built.refusal.detail);
      return built.value;
    };
    const args = (text: string): Partial<ApplicationInput> => ({ args: { form: 'text', text } });
    const expected = { reason: 'MALFORMED', field: 'args_json', detail: 'is required', pointer: '/prompt' };

    it('say what is wrong with them, and where', () => {
      expect(refusalOf(args('{"n":1}'), judging())).toEqual(expected);
      expect(refusalOf(args('{"prompt":1}'), judging())).toBeNull();
    });

    it('leave the empty ones alone unless they say no', () => {
      expect(refusalOf(args(' { } '), judging())).toBeNull();
      expect(refusalOf(args('{}'), judging(true))).toBeNull();
      expect(refusalOf(args('{}'), judging(false))).toEqual(expected);
    });

    it('may want some without saying which', () => {
      const built = buildActionKindRegistry([{ kind: 'agent', allowEmptyArgs: false }]);
      if (!built.ok) throw new Error(built.refusal.detail);
      expect(refusalOf(args('{}'), built.value)).toMatchObject({ detail: 'must not be empty', pointer: '' });
      expect(refusalOf(args('{"n":1}'), built.value)).toBeNull();
    });

    it('do not keep a well-formed application from having its hash: a replay is known by it', () => {
      const outcome = normaliseApplication(input(args('{"n":1}')), judging());
      const fit = normaliseApplication(input(args('{"n":1}')), registry());
      expect(outcome).toMatchObject({ ok: true, unfit: { reason: 'MALFORMED' } });
      expect(outcome.ok && fit.ok && outcome.hash === fit.hash).toBe(true);
    });
  });

  it.each([0, -1, 1.5, Number.NaN, 315_360_000_001])('a time-out of %d ms is refused', (timeoutMs) => {
    const built = buildActionKindRegistry([{ kind: 'crawl', timeoutMs }]);
    expect(built).toMatchObject({ ok: false, refusal: { field: 'action_kinds[0].timeout' } });
  });

  it.each([
    [['ok', '!'], 'action_kinds[1]'],
    [['crawl', 'crawl'], 'action_kinds[1]'],
    [['play', 'playbook'], 'action_kinds[1]'],
  ])('a registry of %j is refused', (kinds, field) => {
    const built = buildActionKindRegistry(kinds.map((kind) => ({ kind })));
    expect(built).toMatchObject({ ok: false, refusal: { field } });
  });
});

describe('refusals name their field', () => {
  it.each<[string, Partial<ApplicationInput>, string, RegExp]>([
    ['an unknown target', { executionTarget: 'moon' }, 'execution_target', /host, local_worktree/],
    ['no target', { executionTarget: '' }, 'execution_target', /one of/],
    ['an empty label', { requiredCapabilities: ['a', 'b', ''] }, 'required_capabilities[2]', /empty/],
    ['a label with a space', { requiredCapabilities: ['a b'] }, 'required_capabilities[0]', /white space/],
    ['a label with a control', { requiredCapabilities: ['a\u0085b'] }, 'required_capabilities[0]', /control/],
    ['a long label', { requiredCapabilities: ['x'.repeat(129)] }, 'required_capabilities[0]', /128 bytes/],
    ['65 labels', { requiredCapabilities: Array<string>(65).fill('a') }, 'required_capabilities', /64/],
    ['a long reference', { libraryRef: 'x'.repeat(513) }, 'library_ref', /512 bytes/],
    ['a padded reference', { libraryRef: ' x' }, 'library_ref', /begin or end/],
    ['an upper-case hash', { libraryContentHash: `sha256:${'A'.repeat(64)}` }, 'library_content_hash', /lower-case/],
    ['a short hash', { libraryContentHash: 'sha256:00' }, 'library_content_hash', /64/],
    ['a workflow without reference', { actionKind: 'workflow' }, 'library_ref', /required/],
    ['a workflow without hash', { actionKind: 'workflow', libraryRef: 'x' }, 'library_content_hash', /required/],
  ])('%s', (_name, changes, field, detail) => {
    const refusal = refusalOf(changes);
    expect(refusal).toMatchObject({ reason: 'MALFORMED', field });
    expect(refusal?.detail).toMatch(detail);
  });

  it('args with pointer, and offset when they are text', () => {
    expect(refusalOf({ args: { form: 'text', text: '{"a":[NaN]}' } })).toEqual({
      reason: 'MALFORMED',
      field: 'args_json',
      detail: 'NaN is not JSON',
      pointer: '/a/0',
      offset: 6,
    });
    expect(refusalOf({ args: { form: 'value', value: { a: [Number.NaN] } } })).toEqual({
      reason: 'MALFORMED',
      field: 'args',
      detail: 'NaN has no JSON form',
      pointer: '/a/0',
    });
    expect(refusalOf({ args: { form: 'text', text: '[]' } })).toMatchObject({ field: 'args_json', pointer: '' });
  });
});
