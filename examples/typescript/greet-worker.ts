// A worker in TypeScript. Ends after a drained SIGTERM or Ctrl-C.
// Node 22.18 and later run it as it is.
//   npm run build && node examples/typescript/greet-worker.ts

import { type Claim, createWorker, NonRetryable } from 'reeve/worker';

interface GreetArgs {
  readonly name?: string;
}

const worker = createWorker({
  address: process.env['REEVE_ADDRESS'] ?? '127.0.0.1:7450',
  slots: 10,
  handlers: {
    agent: async (claim: Claim<GreetArgs>, { signal, progress, output }) => {
      const { name } = claim.args;
      if (name === undefined) throw new NonRetryable('args.name is missing', { code: 'no_name' });
      for (const [at, word] of ['thinking', 'writing', 'signing'].entries()) {
        signal.throwIfAborted(); // cancel, lost lease, deadline or drain: signal.reason says which
        await progress((at + 1) / 3, word);
      }
      await output({ attempt: claim.attempt });
      return { greeting: `Hello, ${name}!` };
    },
  },
});

await worker.run();
