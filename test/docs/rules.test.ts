/**
 * Every rule of the three source documents has tests that exist. docs/reference/rules.md is written from the same
 * table: `npx vitest run test/docs -u` renews it.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ADMISSION_DECISIONS } from './rules/admission-decisions.js';
import { EVENT_PROTOCOL } from './rules/event-protocol.js';
import { LIFECYCLE_AUTHORITY } from './rules/lifecycle-authority.js';
import { testTitles } from './test-titles.js';

const DOCUMENTS = [ADMISSION_DECISIONS, LIFECYCLE_AUTHORITY, EVENT_PROTOCOL];
const NOTE = '<!-- Written from test/docs/rules; `npx vitest run test/docs -u` renews it. -->';
const titles = testTitles(fileURLToPath(new URL('..', import.meta.url)));

describe.each(DOCUMENTS)('$title', ({ rules }) => {
  it.each(rules)('$id $rule', ({ tests }) => {
    expect(tests.length).toBeGreaterThan(0);
    expect(tests.filter((test) => !titles.has(test))).toEqual([]);
  });

  it('gives every rule a name of its own', () => {
    const ids = rules.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

it('a test that does not exist is caught', () => {
  expect(titles.has('docs/rules.test.ts › a test that does not exist is caught')).toBe(true);
  expect(titles.has('docs/rules.test.ts › a test that nobody wrote')).toBe(false);
});

it('the page says what the table says', async () => {
  const pages = DOCUMENTS.flatMap(({ title, note, rules }) => [
    `## ${title}`,
    note,
    [
      '| rule | demands | held by |',
      '| --- | --- | --- |',
      ...rules.map(({ id, rule, tests }) => `| ${id} | ${rule} | ${tests.map(cell).join('<br>')} |`),
    ].join('\n'),
  ]);
  const intro =
    'What the three source documents demand, in this project’s words, and the tests that hold the service to it.';
  await expect(`${['# The rules and their tests', NOTE, intro, ...pages].join('\n\n')}\n`).toMatchFileSnapshot(
    '../../docs/reference/rules.md',
  );
});

function cell(test: string): string {
  const [file = '', title = ''] = test.split(' › ');
  return `[${file}](../../test/${file}) › ${title}`;
}
