/**
 * The reference pages are what the kernel says of itself: a rule that changes without its page is red here.
 * `npx vitest run test/docs -u` writes them anew.
 */
import { describe, expect, it } from 'vitest';
import { AEP_STATES, AEP_TABLE } from '../../src/kernel/aep.js';
import { EDGES } from '../../src/kernel/edges.js';
import { EVENT_CATALOGUE } from '../../src/kernel/event.js';
import { REASON_CODES } from '../../src/kernel/reason-codes.js';

const NOTE = '<!-- Written from the kernel by test/docs; `npx vitest run test/docs -u` renews it. -->';

describe('the reference pages say what the kernel does', () => {
  it('edges', async () => {
    const rows = EDGES.map(({ from, to, by }) => `| ${from ?? '—'} | ${to} | ${by.join(', ')} |`);
    const aep = AEP_STATES.map((state) => `| ${state} | ${AEP_TABLE[state].join(', ') || '— (terminal)'} |`);
    await page('edges', [
      '# Legal changes of status',
      'Every edge there is; any other change is `INVALID_TRANSITION` before anything is written.',
      table(['from', 'to', 'by'], rows),
      '## The AEP table',
      "A worker's own events are judged against it attempt by attempt; the projection of a generation obeys it too.",
      table(['state', 'may be followed by'], aep),
    ]);
  });

  it('reasons', async () => {
    const rows = Object.entries<{ summary: string; caller?: true }>(REASON_CODES).map(
      ([code, { summary, caller }]) => `| \`${code}\` | ${summary} | ${caller === true ? 'yes' : ''} |`,
    );
    await page('reasons', [
      '# Reason codes',
      'Why something happened, on every fact. Callers may state a marked code, or their own: `app.<word>.<word>`.',
      table(['code', 'meaning', 'callers may state it'], rows),
    ]);
  });

  it('events', async () => {
    const rows = Object.entries(EVENT_CATALOGUE).map(
      ([type, { fact, says }]) => `| \`${type}\` | ${fact ? 'fact' : 'stream event'} | ${says} |`,
    );
    await page('events', [
      '# Event types',
      'A fact changes the lifecycle and takes a revision and an event number; a stream event only the number.',
      table(['type', 'kind', 'says'], rows),
    ]);
  });
});

function table(head: readonly string[], rows: readonly string[]): string {
  return [`| ${head.join(' | ')} |`, `| ${head.map(() => '---').join(' | ')} |`, ...rows].join('\n');
}

async function page(name: string, parts: readonly string[]): Promise<void> {
  const [title = '', ...rest] = parts;
  const text = `${[title, NOTE, ...rest].join('\n\n')}\n`;
  await expect(text).toMatchFileSnapshot(`../../docs/reference/${name}.md`);
}
