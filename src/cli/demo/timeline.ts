/**
 * What happened when, in seconds since the demo began, as it happens.
 */
import type { TaskEvent } from '../../sdk/client.js';
import { clipText, plainText, shortId } from '../render/plain-text.js';
import { percentage } from '../render/progress-bar.js';
import type { Terminal } from '../terminal.js';

export class Timeline {
  private readonly startedAt = performance.now();

  constructor(private readonly terminal: Terminal) {}

  /** A step of the demo's own. */
  step(text: string): void {
    this.terminal.line(`${this.stamp()}  ${this.terminal.style('bold', text)}`);
  }

  /** Something that follows from a step. */
  say(text: string): void {
    this.terminal.line(`${this.stamp()}    ${text}`);
  }

  /** A committed event of a task under watch. */
  event(label: string, event: TaskEvent): void {
    const text = wordsOf(event);
    this.say(`${label} ${shortId(event.taskId)}  ${event.type}${text === '' ? '' : `  ${text}`}`);
  }

  elapsedMs(): number {
    return performance.now() - this.startedAt;
  }

  private stamp(): string {
    return this.terminal.style('dim', `${(this.elapsedMs() / 1_000).toFixed(3).padStart(7)}s`);
  }
}

function wordsOf(event: TaskEvent): string {
  const payload: object = typeof event.payload === 'object' && event.payload !== null ? event.payload : {};
  const parts: string[] = [];
  if ('progress' in payload && typeof payload.progress === 'number') parts.push(percentage(payload.progress).trim());
  if ('message' in payload && typeof payload.message === 'string') parts.push(plainText(payload.message));
  if ('worker' in payload && typeof payload.worker === 'string') parts.push(`by ${plainText(payload.worker)}`);
  if ('result' in payload) parts.push(JSON.stringify(payload.result));
  if (event.reason !== undefined && event.type !== 'task.progress') parts.push(event.reason.summary);
  return clipText(parts.join('  '), 100);
}
