// What `reeve conformance` asks of a worker, with the TypeScript SDK. Plain JavaScript, so that every Node runs it.
//   npm run build && node dist/cli/main.js conformance --worker 'node examples/typescript/conformance-worker.mjs'

import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createWorker, TaskFailure } from 'reeve/worker';

let deafRunning = 0;

const worker = createWorker({
  address: process.env.REEVE_ADDRESS,
  slots: 16,
  drainGraceMs: 1_000,
  handlers: {
    'conformance.echo': ({ args }) => args,

    'conformance.sleep': async ({ args }, { signal, progress }) => {
      const startedAt = performance.now();
      for (;;) {
        const leftMs = args.ms - (performance.now() - startedAt);
        if (leftMs <= 0) return { slept: args.ms };
        await sleep(Math.min(50, leftMs), undefined, { signal });
        await progress(Math.min(1, (performance.now() - startedAt) / args.ms));
      }
    },

    'conformance.fail': ({ args: { code, message, retryable } }) => {
      throw new TaskFailure(message, { code, retryable });
    },

    'conformance.deaf': async ({ args }) => {
      const beside = deafRunning++;
      await sleep(args.ms);
      deafRunning--;
      return { beside };
    },

    'conformance.output': async ({ args: { count, bytes } }, { output }) => {
      for (let n = 0; n < count; n++) await output({ n, text: 'x'.repeat(bytes) });
      return { outputs: count };
    },
  },
});

await worker.run();
