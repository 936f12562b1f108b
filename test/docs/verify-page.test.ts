/**
 * docs/operations/verify.md names every invariant with what must hold and what mends it, and nothing that is none.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { INVARIANTS, type InvariantName, invariant } from '../../src/audit/invariants.js';
import { OVERDUE_SLACK_MS } from '../../src/audit/standing.js';

const page = readFileSync('docs/operations/verify.md', 'utf8');

it('docs/operations/verify.md has every invariant as the code has it', () => {
  const rows = page
    .split('\n')
    .filter((line) => /^\| `[a-z]+\.[a-z]+`/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, name, says, mendedBy]) => [name, says, mendedBy]);
  const expected = (Object.keys(INVARIANTS) as InvariantName[]).map((name) => {
    const { says, mendedBy } = invariant(name);
    return [`\`${name}\``, says, mendedBy.map((kind) => `\`${kind}\``).join(', ')];
  });
  expect(rows).toEqual(expected);
});

it('docs/operations/verify.md says how late something may be', () => {
  expect(page).toContain(`may be late by\n${String(OVERDUE_SLACK_MS / 1_000)} s`);
});
