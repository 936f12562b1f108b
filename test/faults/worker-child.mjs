// A worker made to be killed, stopped and terminated. It runs the built files, tells what happens as JSON lines, and
// does what the args of its tasks say: {"ms": n} takes so long, {"deadly": true} kills the process that begins it.
// With `unary` it claims the task named without a stream and reports its end after so many ms.

import process from 'node:process';
import { setTimeout as pass } from 'node:timers/promises';
import { connect } from '../../dist/sdk/client.js';
import { createWorker } from '../../dist/sdk/worker.js';

const { address, unary, ...options } = JSON.parse(process.argv[2]);
const tell = (said) => process.stdout.write(`${JSON.stringify(said)}\n`);

if (unary === undefined) await work();
else await claimAlone(unary);

async function work() {
  const worker = createWorker({
    address,
    ...options,
    onNotice: (notice) => tell(notice.type === 'detached' ? { type: 'detached' } : notice),
    onSettled: ({ taskId, epoch, as }) => tell({ type: 'settled', taskId, epoch, as }),
    handlers: {
      agent: async ({ taskId, epoch, args }) => {
        if (args.deadly === true) process.kill(process.pid, 'SIGKILL');
        tell({ type: 'begun', taskId, epoch });
        await pass(args.ms);
        return { by: options.name };
      },
    },
  });
  await worker.run();
}

async function claimAlone({ taskId, ttlMs, ms }) {
  const client = connect(address);
  const { lease } = await client.transition(taskId, { type: 'claim', workerName: options.name, ttlMs });
  tell({ type: 'begun', taskId, epoch: lease.epoch });
  await pass(ms);
  const claim = { taskId, generation: lease.generation.number, epoch: lease.epoch, token: lease.token };
  const events = ['accepted', 'started', 'completed'].map((type, index) => ({ seq: index + 1, type }));
  const refused = await client.report(claim, { events }).then(
    () => '',
    (error) => error.reason,
  );
  tell({ type: 'reported', refused });
  await client.close();
}
