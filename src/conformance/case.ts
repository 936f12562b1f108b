/**
 * What a case of the worker conformance kit is, and how it says that a worker does not keep to the contract.
 */
import type { Kit } from './kit.js';

export interface ConformanceCase {
  /** Stable: what `--case` takes and scripts look for. */
  readonly id: string;
  /** What a worker must do, as a sentence without its subject. */
  readonly title: string;
  /** Resolves when the worker did; each run has a kit, a port and a worker process of its own. */
  readonly run: (kit: Kit) => Promise<void>;
}

/** The worker does not do what the case asks for. The message says what, for its author. */
export class CaseFailure extends Error {
  override readonly name = 'CaseFailure';
}

/** The case has nothing to ask of this worker. */
export class CaseSkipped extends Error {
  override readonly name = 'CaseSkipped';
}

export function demand(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new CaseFailure(otherwise);
}
