/**
 * `reeve verify`: whether what is stored is what was committed. Goes through the store page by page and holds one page.
 */
import type { Command } from 'commander';
import { FindingSchema, type VerifyResponse } from '../../gen/reeve/v1/admin_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import type { Connection } from '../connection.js';
import { EXIT } from '../exit-codes.js';
import { integerBetween } from '../options/argument-parsers.js';
import { findingRows } from '../render/finding-rows.js';
import { messageJson } from '../render/message-json.js';

const MAX_NAMED_TASKS = 1_000;
/** A page may hold long histories, and what is suspicious is looked at again after a while. */
const PAGE_EXTRA_MS = 105_000;

const COUNTED = ['tasks', 'events', 'links', 'tombstones', 'keys', 'sessions', 'permits'] as const;

interface VerifyOptions {
  readonly pageSize: number;
}

export function addVerify(program: Command, host: CommandHost): void {
  const command = program
    .command('verify')
    .summary('check what is stored')
    .description(
      'Checks the tasks that are named, or the whole store, against the invariants: the record is the fold of its ' +
        'history, the hash chain holds, nothing is missing, overdue or where it does not belong. Reads only, and may be ' +
        'run on a busy service. Exit code 1 when anything was found. --json prints one Finding message per line.',
    )
    .argument('[task-ids...]')
    .option('--page-size <n>', 'tasks per call', integerBetween(1, 1_000), 200);
  onConnection<VerifyOptions>(command, host, async (connection, options, taskIds) => {
    const { terminal } = host;
    const sums = { tasks: 0n, events: 0n, links: 0n, tombstones: 0n, keys: 0n, sessions: 0n, permits: 0n, findings: 0 };
    for await (const page of pagesOf(connection, taskIds, options.pageSize)) {
      const { findings } = page;
      if (options.json) for (const finding of findings) terminal.line(messageJson(FindingSchema, finding));
      else if (findings.length > 0) {
        const [title = '', ...rows] = findingRows(findings, terminal.columns());
        if (sums.findings === 0) terminal.line(title);
        for (const row of rows) terminal.line(row);
      }
      for (const name of COUNTED) sums[name] += page[name];
      sums.findings += findings.length;
      if (terminal.live && !options.json) terminal.redraw(sumLine(sums));
    }
    if (terminal.live && !options.json) terminal.redraw('');
    terminal.note(sumLine(sums));
    return sums.findings === 0 ? EXIT.ok : EXIT.failed;
  });
}

async function* pagesOf(
  connection: Connection,
  taskIds: readonly string[],
  pageSize: number,
): AsyncGenerator<VerifyResponse, void, undefined> {
  let from = 0;
  do {
    const named = taskIds.slice(from, from + MAX_NAMED_TASKS);
    let pageToken = '';
    do {
      const request = { taskIds: named, pageSize, pageToken };
      const page = await connection.call((call) => connection.admin.verify(request, call), PAGE_EXTRA_MS);
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    from += MAX_NAMED_TASKS;
  } while (from < taskIds.length);
}

function sumLine(sums: Record<(typeof COUNTED)[number], bigint> & { findings: number }): string {
  const { findings } = sums;
  // What there is none of is not worth a word, but for the tasks themselves.
  const counted = COUNTED.filter((name, index) => index < 3 || sums[name] > 0n).map((name) => `${sums[name]} ${name}`);
  return `${counted.join(', ')} checked; ${findings === 0 ? 'nothing' : findings} found`;
}
