/**
 * Submitting from an iterable: as many in flight as allowed, no more read from the source than that.
 */
import { type ReeveError, toReeveError } from '../transport/reeve-error.js';
import type { Submitted } from './submitted.js';
import type { Submission } from './submission.js';

export interface SubmitAllOptions {
  /** Submissions in flight. Default 1,024. */
  readonly concurrency?: number;
}

/** The answer to one submission of many: one of the two. */
export type SubmitVerdict =
  | { readonly key: string; readonly accepted: Submitted; readonly refused: undefined }
  | { readonly key: string; readonly accepted: undefined; readonly refused: ReeveError };

/** Verdicts in the order they come. What is in flight when the caller leaves goes on by itself. */
export async function* submitAll(
  submit: (submission: Submission) => Promise<Submitted>,
  source: Iterable<Submission> | AsyncIterable<Submission>,
  { concurrency = 1_024 }: SubmitAllOptions,
): AsyncGenerator<SubmitVerdict, void, undefined> {
  let ready: SubmitVerdict[] = [];
  let inFlight = 0;
  let wake: () => void = () => undefined;
  const settle = (verdict: SubmitVerdict) => {
    inFlight -= 1;
    ready.push(verdict);
    wake();
  };
  const news = () => new Promise<void>((resolve) => (wake = resolve));
  for await (const submission of source) {
    const { key } = submission;
    inFlight += 1;
    submit(submission).then(
      (accepted) => settle({ key, accepted, refused: undefined }),
      (error: unknown) => settle({ key, accepted: undefined, refused: toReeveError(error) }),
    );
    if (inFlight >= concurrency && ready.length === 0) await news();
    const verdicts = ready;
    ready = [];
    yield* verdicts;
  }
  while (inFlight > 0 || ready.length > 0) {
    if (ready.length === 0) await news();
    const verdicts = ready;
    ready = [];
    yield* verdicts;
  }
}
