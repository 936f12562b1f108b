/**
 * The TypeScript SDK keeps to the contract of the work stream, by the kit that every other worker is measured with.
 */
import { it } from 'vitest';
import { CONFORMANCE_TIMEOUT_MS, expectConformance } from './conforming.js';

it('the TypeScript worker conforms', { timeout: CONFORMANCE_TIMEOUT_MS }, async () => {
  await expectConformance(`exec '${process.execPath}' examples/typescript/conformance-worker.mjs`);
});
