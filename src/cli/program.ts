/**
 * The command line as a whole: the commands in the order of --help, the options they share, and the one place where
 * a failure becomes a line and an exit code.
 */
import { Command } from 'commander';
import { addGlobalOptions, type CommandHost, optionsOf } from './command-host.js';
import { addCancel } from './commands/cancel.js';
import { addCancelAll } from './commands/cancel-all.js';
import { addConformance } from './commands/conformance.js';
import { addDemo } from './commands/demo.js';
import { addDev } from './commands/dev.js';
import { addDrainWorker } from './commands/drain-worker.js';
import { addEvents } from './commands/events.js';
import { addExplain } from './commands/explain.js';
import { addGet } from './commands/get.js';
import { addHealth } from './commands/health.js';
import { addList } from './commands/list.js';
import { addPurge } from './commands/purge.js';
import { addRepair } from './commands/repair.js';
import { addResume } from './commands/resume.js';
import { addServe } from './commands/serve.js';
import { addSubmit } from './commands/submit.js';
import { addSuspend } from './commands/suspend.js';
import { addUpdate } from './commands/update.js';
import { addVerify } from './commands/verify.js';
import { addWatch } from './commands/watch.js';
import { addWork } from './commands/work.js';
import { addWorkers } from './commands/workers.js';
import { EXIT, type ExitCode, exitCodeHelp } from './exit-codes.js';
import { packageVersion } from './package-root.js';
import { describeFailure } from './render/failure.js';
import type { Terminal } from './terminal.js';

/** Runs one command line, without the program's own name. Never throws. */
export async function runProgram(
  args: readonly string[],
  terminal: Terminal,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok;
  const program = createProgram({ terminal, env, end: (exit) => (code = exit) });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    const { address, json } = optionsOf<object>(program);
    const failure = describeFailure(error, address);
    if (failure.line !== undefined) terminal.note(json ? failure.json : failure.line);
    return failure.exit;
  }
}

export function createProgram(host: CommandHost): Command {
  const program = new Command('reeve')
    .description('Reeve: one service that owns the state of every task.')
    .version(packageVersion(), '-V, --version')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'reeve: ')),
    })
    .exitOverride()
    .addHelpText('after', `\n${exitCodeHelp()}\n\nMore about a command: reeve <command> --help`);
  addGlobalOptions(program);
  program.commandsGroup('Tasks:');
  addSubmit(program, host);
  addGet(program, host);
  addList(program, host);
  addEvents(program, host);
  addExplain(program, host);
  addWatch(program, host);
  addCancel(program, host);
  addCancelAll(program, host);
  addSuspend(program, host);
  addResume(program, host);
  addUpdate(program, host);
  program.commandsGroup('Workers:');
  addWork(program, host);
  addWorkers(program, host);
  addDrainWorker(program, host);
  addConformance(program, host);
  program.commandsGroup('Service:');
  addServe(program, host);
  addDev(program, host);
  addDemo(program, host);
  addHealth(program, host);
  addPurge(program, host);
  addVerify(program, host);
  addRepair(program, host);
  return program;
}
