/**
 * Looking again at what was found before it is told: once at everything, further times at what passes by itself. What is
 * gone in a fresh snapshot is not told. Bounded by the page that it was found in.
 */
import type { Clock } from '../lib/clock.js';
import { type Finding, sameFinding } from './findings.js';
import { invariant } from './invariants.js';

/** Before the second look, and before each further one at what passes by itself: a reaper has much to do at times. */
const LOOK_AGAIN_AFTER_MS: readonly number[] = [100, 1_000, 3_000];

export interface Suspect {
  readonly findings: readonly Finding[];
  /** What is found there now. Throws StoreError. */
  readonly again: () => Promise<readonly Finding[]>;
}

/** Those of the findings that are still there, in their order, looked at until nothing among them may pass. */
export async function confirmed(suspects: readonly Suspect[], clock: Clock): Promise<readonly Finding[]> {
  let left = suspects;
  for (const [index, delayMs] of LOOK_AGAIN_AFTER_MS.entries()) {
    const lookAgain = ({ findings }: Suspect): boolean => index === 0 || findings.some(mayPass);
    if (!left.some(lookAgain)) break;
    await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    const after: Suspect[] = [];
    for (const suspect of left) after.push(lookAgain(suspect) ? await stillThere(suspect) : suspect);
    left = after.filter(({ findings }) => findings.length > 0);
  }
  return left.flatMap(({ findings }) => findings);
}

async function stillThere({ findings: before, again }: Suspect): Promise<Suspect> {
  const now = await again();
  return { again, findings: now.filter((finding) => before.some((known) => sameFinding(finding, known))) };
}

function mayPass({ invariant: name }: Finding): boolean {
  return invariant(name).passes === true;
}
