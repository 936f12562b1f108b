/**
 * One worker process of the demo: `node demo-worker.js <address> <name>`. Says `attached` on stdout when it is ready
 * for work. Nothing about it is special: it is what a user's worker looks like.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createWorker, type Handler } from '../../sdk/worker.js';
import { COUNT_KIND, type CountArgs, SESSION_TTL_MS, STEPS_KIND, type StepsArgs } from './demo-tasks.js';
import { countFile } from './source-files.js';

const [address = '', name = ''] = process.argv.slice(2);

/** Reads a file of this package and counts what is in it. */
const count: Handler<CountArgs> = async (claim, { progress, output }) => {
  const { root, path } = claim.args;
  const counted = await countFile(root, path, (share) => progress(share, path));
  await output(counted);
  return counted;
};

/** Takes its time, step by step, and remembers how far it came. */
const steps: Handler<StepsArgs> = async (claim, { signal, progress, checkpoint }) => {
  const { steps: wanted, stepMs } = claim.args;
  const first = typeof claim.checkpoint === 'number' ? claim.checkpoint : 0;
  for (let done = first; done < wanted; done += 1) {
    await delay(stepMs, undefined, { signal });
    await checkpoint(done + 1);
    await progress((done + 1) / wanted, `step ${done + 1} of ${wanted} on ${name}`);
  }
  return { steps: wanted, resumed_at: first, finished_by: name };
};

const worker = createWorker<{ [COUNT_KIND]: CountArgs; [STEPS_KIND]: StepsArgs }>({
  address,
  name,
  slots: 3,
  ttlMs: SESSION_TTL_MS,
  handlers: { [COUNT_KIND]: count, [STEPS_KIND]: steps },
});
await worker.start();
process.stdout.write('attached\n');
await worker.run();
