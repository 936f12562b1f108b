/**
 * All cases, in the order in which a worker's author wants to see them.
 */
import type { ConformanceCase } from './case.js';
import { cancels } from './cases/cancels.js';
import { claims } from './cases/claims.js';
import { faults } from './cases/faults.js';
import { firstWords } from './cases/first-words.js';
import { leases } from './cases/leases.js';
import { leaving } from './cases/leaving.js';
import { reattach } from './cases/reattach.js';
import { verdicts } from './cases/verdicts.js';

export const CASES: readonly ConformanceCase[] = [
  ...firstWords,
  ...claims,
  ...verdicts,
  ...cancels,
  ...leases,
  ...reattach,
  ...faults,
  ...leaving,
];
