/**
 * Where a command writes and what it may assume about who reads: a person at a terminal, or a program. Commands print
 * results through it and nothing else; a reader that goes away (`reeve list | head`) ends the program quietly, unless
 * what it does matters more than what it prints.
 */
import type { Readable } from 'node:stream';
import { chooseStyle, type Style } from './render/style.js';

export interface Terminal {
  readonly stdin: Readable;
  /** A person looks at stdout; lines may be redrawn. */
  readonly live: boolean;
  readonly style: Style;
  /** Characters per line; 0 when there is no limit. */
  columns(): number;
  /** One line of result, to stdout. */
  line(text: string): void;
  /** One line beside the result (hints, errors), to stderr. */
  note(text: string): void;
  /** Replaces the last line, without ending it. Only when `live`. */
  redraw(text: string): void;
  /** From now on a reader that goes away ends nothing; what is printed after that is lost. */
  outliveReaders(): void;
}

export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  let outlives = false;
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (outlives) return;
      if (error.code === 'EPIPE') process.exit();
      throw error;
    });
  }
  const live = stdout.isTTY && env['TERM'] !== 'dumb';
  let drawn = false;
  const clear = () => {
    if (drawn) stdout.write('\r\u001b[2K');
    drawn = false;
  };
  return {
    stdin,
    live,
    style: chooseStyle(stdout.isTTY, env),
    columns: () => (stdout.isTTY ? stdout.columns : 0),
    line: (text) => {
      clear();
      stdout.write(`${text}\n`);
    },
    note: (text) => {
      clear();
      stderr.write(`${text}\n`);
    },
    redraw: (text) => {
      clear();
      stdout.write(text);
      drawn = text !== '';
    },
    outliveReaders: () => {
      outlives = true;
    },
  };
}
