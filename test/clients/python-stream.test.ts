/**
 * The Python worker and client work: stubs by the documented command, against a real server, and by the kit.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { CONFORMANCE_TIMEOUT_MS, expectConformance } from '../conformance/conforming.js';
import { startFixture } from '../server/server-fixture.js';
import { ExampleProcess } from './example-process.js';
import { expectGreeting } from './greeting-example.js';
import { generatePythonStubs, PYTHON, triesPython } from './python.js';

const stubs = mkdtempSync(join(tmpdir(), 'reeve-python-'));
const env = { PYTHONPATH: stubs, PYTHONDONTWRITEBYTECODE: '1' };

describe.runIf(triesPython)('Python', () => {
  beforeAll(() => generatePythonStubs(stubs), 60_000);
  afterAll(() => {
    ExampleProcess.killAll();
    rmSync(stubs, { recursive: true, force: true });
  });

  it('the worker greets, the client submits, follows and cancels', { timeout: 60_000 }, async () => {
    const fixture = await startFixture();
    try {
      const program = (name: string) => ({ command: PYTHON, args: [`examples/python/${name}`], env });
      await expectGreeting(fixture, program('worker.py'), program('client.py'));
    } finally {
      await fixture.close();
    }
  });

  it('the worker conforms', { timeout: CONFORMANCE_TIMEOUT_MS }, async () => {
    await expectConformance(`exec '${PYTHON}' examples/python/conformance_worker.py`, env);
  });
});
