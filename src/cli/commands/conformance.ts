/**
 * `reeve conformance`: plays the server against any worker program and tells case by case whether it keeps to the
 * contract of the work stream. Needs no service; docs/conformance.md says what the program has to offer.
 */
import { type Command, Option } from 'commander';
import type { ConformanceCase } from '../../conformance/case.js';
import { CASES } from '../../conformance/catalog.js';
import { ADDRESS_PLACEHOLDER, ADDRESS_VARIABLE } from '../../conformance/kit-contract.js';
import { type CaseResult, type Outcome, runCases } from '../../conformance/run-cases.js';
import { WorkerProcess } from '../../conformance/worker-process.js';
import { MAX_TIMER_MS } from '../../sdk/transport/option-checks.js';
import { type CommandHost, type GlobalOptions, optionsOf } from '../command-host.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { collectList, integerBetween } from '../options/argument-parsers.js';
import { parseDuration } from '../options/duration.js';
import { plainText } from '../render/plain-text.js';
import type { Tint } from '../render/style.js';
import { renderTable } from '../render/table.js';
import type { Terminal } from '../terminal.js';
import { UsageError } from '../usage-error.js';

const TINTS: Readonly<Record<Outcome, Tint>> = { passed: 'green', failed: 'red', skipped: 'yellow' };

interface ConformanceOptions {
  readonly worker?: string;
  readonly case?: readonly string[];
  readonly list?: boolean;
  readonly startTimeout: number;
  readonly timeout: number;
  readonly parallel: number;
}

export function addConformance(program: Command, host: CommandHost): void {
  const command = program
    .command('conformance')
    .summary('try whether a worker program keeps to the contract')
    .description(
      'Starts the worker program once per case, plays the server against it, and says case by case whether it keeps ' +
        'to the contract of the work stream. Needs no service. Exits with 0 only if every case passed. What the ' +
        'program has to offer: docs/conformance.md.',
    )
    .option(
      '--worker <command>',
      `what starts the worker, by /bin/sh -c; the address is in ${ADDRESS_VARIABLE} and stands in for ${ADDRESS_PLACEHOLDER}`,
    )
    .option('--case <id>', 'only this case; repeatable', collectList)
    .option('--list', 'show the cases and end')
    .addOption(
      new Option('--start-timeout <duration>', 'the most until a worker that was started says Hello')
        .argParser(parseDuration)
        .default(60_000, '60s'),
    )
    .addOption(
      new Option('--timeout <duration>', 'the most that one case may take from there')
        .argParser(parseDuration)
        .default(20_000, '20s'),
    )
    .option('--parallel <n>', 'cases at a time', integerBetween(1, 64), 4);
  command.action(async () => {
    const options = optionsOf<ConformanceOptions>(command);
    const cases = chosenCases(options.case);
    if (options.list === true) {
      for (const line of listed(cases, options.json)) host.terminal.line(line);
      return host.end(EXIT.ok);
    }
    host.end(await run(cases, options, host.terminal));
  });
}

function chosenCases(ids: readonly string[] | undefined): readonly ConformanceCase[] {
  if (ids === undefined) return CASES;
  const unknown = ids.filter((id) => CASES.every((each) => each.id !== id));
  if (unknown.length > 0) throw new UsageError(`no such case: ${unknown.join(', ')}; --list shows them`);
  return CASES.filter(({ id }) => ids.includes(id));
}

function listed(cases: readonly ConformanceCase[], json: boolean): readonly string[] {
  if (json) return cases.map(({ id, title }) => JSON.stringify({ id, title }));
  const rows = cases.map(({ id, title }) => [id, title]);
  return renderTable([{ title: 'CASE' }, { title: 'A WORKER', maxWidth: Infinity }], rows, 0);
}

async function run(
  cases: readonly ConformanceCase[],
  { worker = '', startTimeout, timeout, parallel, json }: ConformanceOptions & GlobalOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  if (worker.trim() === '') throw new UsageError('--worker is missing: the command that starts the worker');
  // However this process ends, no worker outlives it (but for SIGKILL, which nobody hears).
  process.once('exit', () => WorkerProcess.killAll());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(EXIT.interrupted));
  const results = await runCases(cases, {
    command: worker,
    startTimeoutMs: Math.min(startTimeout, MAX_TIMER_MS),
    timeoutMs: Math.min(timeout, MAX_TIMER_MS),
    parallel,
    onResult: (result) => {
      if (json) terminal.line(JSON.stringify(result));
      else if (terminal.live) terminal.redraw(`${result.id} ${result.outcome}`);
    },
  });
  if (!json) for (const line of report(results, terminal)) terminal.line(line);
  return results.every(({ outcome }) => outcome === 'passed') ? EXIT.ok : EXIT.failed;
}

function report(results: readonly CaseResult[], terminal: Terminal): readonly string[] {
  const rows = results.map(({ id, outcome, durationMs, title, reason }) => [
    id,
    { text: outcome, paint: (text: string) => terminal.style(TINTS[outcome], text) },
    String(durationMs),
    plainText(reason === '' ? title : reason),
  ]);
  const head = [
    { title: 'CASE' },
    { title: 'OUTCOME' },
    { title: 'MS', align: 'right' as const },
    { title: 'A WORKER, OR WHY NOT', maxWidth: Infinity },
  ];
  const said = results.flatMap(({ id, workerOutput }) =>
    workerOutput === '' ? [] : ['', `The worker's last words in ${id}:`, ...workerOutput.split('\n').map(plainText)],
  );
  const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
  const total = `${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
  // Not cut to the terminal: the reasons are what this is run for.
  return [...renderTable(head, rows, 0), ...said, '', total];
}
