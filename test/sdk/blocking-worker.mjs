// A worker process whose handler stops its whole loop: `node blocking-worker.mjs ADDRESS NAME OPTIONS`, with worker
// options as JSON. Args of a task: {"blockMs": {"<name>": ms}}. Tells what happens in JSON lines. It runs the built
// files, so that its thread is that of the product; REEVE_SDK_WORKER names others.

import process from 'node:process';
import { setImmediate } from 'node:timers/promises';
import { URL } from 'node:url';

const { createWorker } = await import(
  process.env.REEVE_SDK_WORKER ?? new URL('../../dist/sdk/worker.js', import.meta.url).href
);
const [address, name, options = '{}'] = process.argv.slice(2);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
/** What a computation does to a loop, without the heat. */
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const worker = createWorker({
  address,
  name,
  ...JSON.parse(options),
  onNotice: ({ type, ...rest }) => say({ type, error: rest.error?.reason, why: rest.why, silentMs: rest.silentMs }),
  handlers: {
    agent: async (claim, context) => {
      say({ type: 'began', taskId: claim.taskId, epoch: claim.epoch, attempt: claim.attempt });
      const blockMs = claim.args.blockMs?.[name] ?? 0;
      if (blockMs > 0) {
        block(200);
        context.progress(0.5).catch(() => undefined);
        block(blockMs);
      }
      // What came meanwhile is heard first.
      await setImmediate();
      try {
        await context.progress(1);
        await context.committed();
      } catch (error) {
        say({ type: 'refused', error: error.name, why: error.why });
        throw error;
      }
      return { by: name };
    },
  },
});

try {
  await worker.run();
  say({ type: 'over' });
} catch (error) {
  say({ type: 'run_rejected', error: error.reason, message: error.message });
  process.exitCode = 3;
}
