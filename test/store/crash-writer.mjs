// A process made to be killed: opens the store at the path given, commits the batches it is sent and says what each
// came to; one without plans is a step of the sweep. It runs the built files, so that its threads are those of the product.

import process from 'node:process';
import { openSqliteStore } from '../../dist/store/sqlite/sqlite-store.js';

const store = await openSqliteStore({ path: process.argv[2], checkpointPages: 50 });
process.on('message', (batch) => {
  const done = batch.plans.length > 0 ? store.commit(batch) : store.sweepPurged();
  done.then(
    (verdicts) => process.send({ batchId: batch.batchId, verdicts }),
    (error) => process.send({ batchId: batch.batchId, error: String(error) }),
  );
});
process.send('open');
