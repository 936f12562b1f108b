/**
 * The demo from its first process to its last check. Everything is real: a service on a fresh SQLite file, workers in
 * processes of their own, files that are read.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../sdk/client.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { grpcurlLines } from '../render/try-out.js';
import type { Terminal } from '../terminal.js';
import { checkTask, type Checked, type Expectation } from './demo-check.js';
import { DemoProcess } from './processes.js';
import { cancelOne, countEveryFile, killOneWorker, type Stage, useOneKeyTwice } from './scenes.js';
import { findSources } from './source-files.js';
import { summaryLines } from './summary.js';
import { Timeline } from './timeline.js';

/** All scenes together; reached only when something hangs. */
const PATIENCE_MS = 90_000;
const MAX_PROBLEMS_SHOWN = 20;

export interface DemoOptions {
  readonly workers: number;
  /** `host:port`; port 0 takes a free one. */
  readonly listen: string;
  /** Keep the service up until a signal comes. */
  readonly stay: boolean;
}

/** `failed` unless every task ended as it should. */
export async function runDemo(terminal: Terminal, options: DemoOptions): Promise<ExitCode> {
  const folder = mkdtempSync(join(tmpdir(), 'reeve-demo-'));
  const cleanUp = () => {
    DemoProcess.killAll();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', cleanUp);
  try {
    return await play(terminal, options, folder);
  } finally {
    process.off('exit', cleanUp);
    cleanUp();
  }
}

async function play(terminal: Terminal, options: DemoOptions, folder: string): Promise<ExitCode> {
  const sources = findSources();
  const timeline = new Timeline(terminal);
  const store = `sqlite:${join(folder, 'reeve.db')}`;
  timeline.step(`start the service: reeve serve --store ${store}`);
  const server = await DemoProcess.startServer(store, options.listen);
  timeline.say(`ready on ${server.address}, process ${server.process.pid}`);
  timeline.step(`start ${options.workers} workers`);
  const workers = await Promise.all(
    Array.from({ length: options.workers }, (_, at) => DemoProcess.startWorker(server.address, `worker-${at + 1}`)),
  );
  timeline.say(workers.map(({ name, pid }) => `${name} is process ${pid}`).join(', '));
  const reeve = connect(server.address, { actor: { type: 'producer', id: 'demo' } });
  try {
    const stage: Stage = { reeve, timeline, sources, workers };
    const { expectations, problems } = await within(PATIENCE_MS, perform(stage));
    timeline.step('read every task back, with its whole history, and count the files again');
    const checked: Checked[] = [];
    for (const expectation of expectations) checked.push(await checkTask(reeve, expectation));
    const found = [...problems, ...checked.flatMap((each) => each.problems)];
    if (!server.process.running) found.push(`the service is gone: ${server.process.lastWords()}`);
    report(terminal, timeline, checked, found);
    const sample = expectations.at(-1)?.taskId ?? '';
    if (options.stay) await stay(terminal, server.address, sample);
    else sayHowToStay(terminal, server.address, sample);
    return found.length === 0 ? EXIT.ok : EXIT.failed;
  } finally {
    await reeve.close();
    await Promise.all(workers.filter(({ running }) => running).map((worker) => worker.stop()));
    await server.process.stop();
  }
}

async function perform(stage: Stage): Promise<{ expectations: readonly Expectation[]; problems: readonly string[] }> {
  const counted = await countEveryFile(stage);
  const problems = await useOneKeyTwice(stage);
  const cancelled = await cancelOne(stage);
  const handedOver = await killOneWorker(stage);
  return { expectations: [...counted, ...cancelled, ...handedOver], problems };
}

function report(terminal: Terminal, timeline: Timeline, checked: readonly Checked[], found: readonly string[]): void {
  timeline.say(
    found.length === 0 ? 'every task ended as it should' : `${found.length} things are NOT as they should be`,
  );
  terminal.line('');
  for (const line of summaryLines(checked, terminal.columns())) terminal.line(line);
  for (const problem of found.slice(0, MAX_PROBLEMS_SHOWN)) terminal.note(`reeve: ${problem}`);
}

function sayHowToStay(terminal: Terminal, address: string, taskId: string): void {
  terminal.line(`\nThe service at ${address} goes now. With --stay it stays up, to look around with`);
  for (const line of grpcurlLines(address, taskId)) terminal.line(`  ${line}`);
}

async function stay(terminal: Terminal, address: string, taskId: string): Promise<void> {
  terminal.line(`\nThe service stays up on ${address} until Ctrl-C. Look around:`);
  terminal.line(`  reeve list --address ${address}`);
  terminal.line(`  reeve events --address ${address} ${taskId}`);
  for (const line of grpcurlLines(address, taskId)) terminal.line(`  ${line}`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the demo is not over after ${ms / 1_000} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
