// One contract for every store. A bug found in any of them becomes a case in it.

import { afterEach, beforeEach, describe } from 'vitest';
import type { TaskStore } from '../../src/store/task-store.js';
import { auditContract } from './audit-contract.js';
import { commitContract } from './commit-contract.js';
import { memoryEngine, sqliteEngine } from './engines.js';
import { eventContract } from './event-contract.js';
import { familyContract } from './family-contract.js';
import { purgeContract } from './purge-contract.js';
import { permitContract } from './permit-contract.js';
import { permitSurplusContract } from './permit-surplus-contract.js';
import { readContract } from './read-contract.js';
import { goneSessionsContract } from './gone-sessions-contract.js';
import { sessionContract } from './session-contract.js';
import { skewContract } from './skew-contract.js';
import type { StoreSource } from './store-under-test.js';

const CONTRACT: Readonly<Record<string, (store: StoreSource) => void>> = {
  commits: commitContract,
  'write skew': skewContract,
  families: familyContract,
  permits: permitContract,
  'permits of many lines': permitSurplusContract,
  sessions: sessionContract,
  'sessions that are gone': goneSessionsContract,
  reads: readContract,
  audits: auditContract,
  purges: purgeContract,
  'events of many tasks': eventContract,
};

describe.each([memoryEngine, sqliteEngine])('$name store', (engine) => {
  let store: TaskStore | undefined;

  beforeEach(async () => {
    store = await engine.open();
  });

  afterEach(async () => {
    await store?.close();
  });

  const source: StoreSource = () => {
    if (store === undefined) throw new Error('no store is open');
    return store;
  };

  for (const [subject, contract] of Object.entries(CONTRACT)) {
    describe(subject, () => {
      contract(source);
    });
  }
});
