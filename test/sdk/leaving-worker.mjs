// A worker process that is stopped while it has every reason to wait: `node leaving-worker.mjs ADDRESS RENEWAL`. Its
// handler is deaf and has a deadline far away. It says `running`, stops when the server drains, and tells what is left
// to hold the process once `run` has resolved. Nothing ends it but that nothing is left.

import process from 'node:process';
import { URL } from 'node:url';

const { createWorker } = await import(new URL('../../dist/sdk/worker.js', import.meta.url).href);
const [address, renewal] = process.argv.slice(2);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const worker = createWorker({
  address,
  renewal,
  drainStopMs: 50,
  onNotice: ({ type, error }) => {
    say({ type, error: error?.reason });
    if (type === 'server_draining') void worker.drain({ graceMs: 0, answerMs: 200 });
  },
  handlers: {
    // Looks at its signal, which arms the deadline, and never ends.
    agent: (_claim, { signal }) => new Promise(() => say({ type: 'running', aborted: signal.aborted })),
    flow: () => 'waits for its children',
  },
});
await worker.run();
say({ type: 'over', left: process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap') });
