/**
 * `reeve cancel-all`: ask many tasks to stop, named or described, with an answer for each.
 */
import type { Command } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { type CancelVerdict, CancelStateSchema, CancelVerdictSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { msToDuration } from '../../sdk/transport/time.js';
import { fromRefusal } from '../../sdk/transport/reeve-error.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { enumWord } from '../options/argument-parsers.js';
import { parseDuration } from '../options/duration.js';
import { addFilterOptions, filterOf, type FilterOptions, isDescribed } from '../options/filter-options.js';
import { messageJson } from '../render/message-json.js';
import { plainText } from '../render/plain-text.js';
import { UsageError } from '../usage-error.js';

const TASKS_PER_CALL = 1_000;

interface CancelAllOptions extends ActorOptions, FilterOptions {
  readonly everything?: boolean;
  readonly requestId?: string;
  readonly reason?: string;
  readonly reasonCode: string;
  readonly grace?: number;
}

export function addCancelAll(program: Command, host: CommandHost): void {
  const command = program
    .command('cancel-all')
    .summary('ask many tasks to stop')
    .description(
      'Asks the tasks that are named, or those that fit the description and are not over, to stop. Prints an answer ' +
        'for each; exit code 4 when one was refused. --json prints one CancelVerdict message per line.',
    )
    .argument('[task-ids...]');
  addFilterOptions(command)
    .option('--everything', 'every task of the namespace that is not over')
    .option('--request-id <id>', 'names this request for each of the tasks, for a safe repetition; made unless given')
    .option('--reason <text>', 'why; reaches the workers')
    .option(
      '--reason-code <code>',
      'why, for programs: app.<word>.<word>, or one that callers may use',
      'run.cancelled.user',
    )
    .option(
      '--grace <duration>',
      'enforce it after this; otherwise the workers take as long as they take',
      parseDuration,
    );
  addActorOption(command);
  onConnection<CancelAllOptions>(command, host, async (connection, options, taskIds) => {
    const { terminal } = host;
    const described = isDescribed(options) || options.everything === true;
    if (taskIds.length > 0 === described) {
      throw new UsageError('say which: task ids, or a description, or --everything');
    }
    const wish = {
      requestId: options.requestId ?? uuidV7(),
      reason: { code: options.reasonCode, summary: options.reason ?? '' },
      actor: operatorOf(options),
      ...(options.grace !== undefined && { grace: msToDuration(options.grace) }),
    };
    const counts = new Map<string, number>();
    const tell = (verdicts: readonly CancelVerdict[]): void => {
      for (const verdict of verdicts) {
        const word = answerOf(verdict);
        counts.set(word, (counts.get(word) ?? 0) + 1);
        if (options.json) terminal.line(messageJson(CancelVerdictSchema, verdict));
        else terminal.line(lineOf(verdict, word));
      }
    };
    if (described) {
      const filter = filterOf(options);
      let pageToken = '';
      do {
        const page = { ...wish, filter, pageSize: TASKS_PER_CALL, pageToken };
        const answer = await connection.call((call) => connection.tasks.cancelBatch(page, call));
        tell(answer.verdicts);
        pageToken = answer.nextPageToken;
      } while (pageToken !== '');
    } else {
      for (let from = 0; from < taskIds.length; from += TASKS_PER_CALL) {
        const some = { ...wish, taskIds: taskIds.slice(from, from + TASKS_PER_CALL) };
        tell((await connection.call((call) => connection.tasks.cancelBatch(some, call))).verdicts);
      }
    }
    if (!options.json) {
      const sums = [...counts].map(([word, count]) => `${count} ${word}`);
      terminal.note(sums.length === 0 ? 'no task fits' : sums.join(', '));
    }
    return counts.has(REFUSED) ? EXIT.refused : EXIT.ok;
  });
}

const REFUSED = 'refused';

function answerOf({ verdict }: CancelVerdict): string {
  return verdict.case === 'accepted' ? enumWord(CancelStateSchema, verdict.value.state) : REFUSED;
}

function lineOf({ taskId, verdict }: CancelVerdict, word: string): string {
  const line = `${plainText(taskId)}  ${word}`;
  if (verdict.case !== 'refused') return line;
  const { reason, message } = fromRefusal(verdict.value);
  return `${line}: ${reason}: ${plainText(message)}`;
}
