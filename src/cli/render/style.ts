/**
 * Colour, as hints only: no text may depend on one. Off unless a person looks on.
 */
import { TaskStatus } from '../../gen/reeve/v1/task_pb.js';

const SGR = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], cyan: [36, 39] } as const;

export type Tint = keyof typeof SGR;

export type Style = (tint: Tint, text: string) => string;

export const plainStyle: Style = (_tint, text) => text;

export const colourStyle: Style = (tint, text) => {
  const [on, off] = SGR[tint];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

/** NO_COLOR and FORCE_COLOR as everywhere; else colour on a terminal. */
export function chooseStyle(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  if ((env['NO_COLOR'] ?? '') !== '') return plainStyle;
  if ((env['FORCE_COLOR'] ?? '0') !== '0') return colourStyle;
  return isTerminal && env['TERM'] !== 'dumb' ? colourStyle : plainStyle;
}

export function tintOfStatus(status: TaskStatus): Tint {
  switch (status) {
    case TaskStatus.COMPLETED:
      return 'green';
    case TaskStatus.FAILED:
    case TaskStatus.TIMED_OUT:
      return 'red';
    case TaskStatus.CANCELLED:
    case TaskStatus.SKIPPED:
    case TaskStatus.RETRY_WAIT:
    case TaskStatus.SUSPENDED:
      return 'yellow';
    case TaskStatus.RUNNING:
      return 'cyan';
    case TaskStatus.UNSPECIFIED:
    case TaskStatus.QUEUED:
    case TaskStatus.WAITING_DEPENDENCY:
      return 'dim';
  }
}
