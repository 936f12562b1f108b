/**
 * What the demo's tasks are, as both its sides know them: the one that submits and the workers.
 */

/** Counts one file. */
export const COUNT_KIND = 'demo.count';
/** Takes its time. */
export const STEPS_KIND = 'demo.steps';

/** The shortest that there is: a killed worker is missed after two seconds. */
export const SESSION_TTL_MS = 2_000;

export interface CountArgs {
  readonly root: string;
  /** Relative to the root. */
  readonly path: string;
}

export interface StepsArgs {
  readonly steps: number;
  readonly stepMs: number;
}
