/**
 * The one line that moves while a task is watched: status, attempt, worker, progress, message.
 */
import { TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { enumWord } from '../options/argument-parsers.js';
import { clipText, plainText } from '../render/plain-text.js';
import { progressBar } from '../render/progress-bar.js';
import { type Style, tintOfStatus } from '../render/style.js';
import type { TaskView } from './task-view.js';

const BAR_CELLS = 24;

export interface LiveLineSettings {
  readonly style: Style;
  /** Characters that fit; 0: no limit. */
  readonly width: number;
  /** 0: not known. */
  readonly maxAttempts: number;
}

export function liveLine(view: TaskView, { style, width, maxAttempts }: LiveLineSettings): string {
  const status = enumWord(TaskStatusSchema, view.status);
  const attempt = view.attempt > 0 ? `attempt ${view.attempt}${maxAttempts > 0 ? `/${maxAttempts}` : ''}` : '';
  const state = view.cancelling ? 'cancel requested' : view.blocked === '' ? '' : `blocked: ${plainText(view.blocked)}`;
  const outputs = view.outputs > 0 ? `${view.outputs} output${view.outputs === 1 ? '' : 's'}` : '';
  const rest = [
    plainText(view.worker),
    attempt,
    view.attempt > 0 ? progressBar(view.fraction, BAR_CELLS) : '',
    outputs,
    state,
    plainText(view.message),
  ];
  const text = rest.filter((part) => part.trim() !== '').join('  ');
  const room = width === 0 ? Number.MAX_SAFE_INTEGER : Math.max(0, width - status.length - 3);
  return `${style(tintOfStatus(view.status), status)}  ${clipText(text, room)}`;
}
