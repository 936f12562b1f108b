/**
 * The Python worker and client work: stubs by the documented command, against a real server, and by the kit.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

  it('the worker does what needs no server to be seen', { timeout: 60_000 }, async () => {
    const args = ['-W', 'ignore::ResourceWarning', '-m', 'unittest', 'discover', '-s', 'examples/python'];
    await ExampleProcess.output(PYTHON, args, env);
  });

  it('a signal is heard whichever thread of the worker gets it', { timeout: 60_000 }, async () => {
    // Python's own waits for locks end only for a signal to the main thread.
    const program = `
import signal, sys, threading
sys.path.insert(0, "examples/python")
from reeve_worker import Worker
threading.Timer(1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
Worker("127.0.0.1:1", {"agent": print}).run()
print("left")
`;
    expect(await ExampleProcess.output(PYTHON, ['-c', program], env)).toContain('left');
  });

  it('the worker conforms', { timeout: CONFORMANCE_TIMEOUT_MS }, async () => {
    await expectConformance(`exec '${PYTHON}' examples/python/conformance_worker.py`, env);
  });
});
