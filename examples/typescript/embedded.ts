// The authority inside a program: no server, no network, the same rules. Tasks are kept in a SQLite file, so what was
// submitted is there after a crash, and one key is one task however often this is run.
// Node 22.18 and later run it as it is.
//   npm run build && node examples/typescript/embedded.ts ./tasks.db

import { type Claim, isReeveRefusal, openAuthority } from 'reeve/authority';

const [file = './tasks.db'] = process.argv.slice(2);

const reeve = await openAuthority({
  store: `sqlite:${file}`,
  kinds: [
    {
      name: 'count-words',
      argsSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      timeoutMs: 60_000,
    },
  ],
  actor: { type: 'producer', id: 'examples/embedded' },
});

// Told after every commit, in order; what a listener throws changes nothing.
reeve.subscribe(({ task, events }) => {
  for (const event of events) console.log(`${task.key}: ${event.type}`);
});

const texts = { poem: 'so much depends upon a red wheel barrow', note: 'call back' };
await reeve.submitAll(Object.entries(texts).map(([key, text]) => ({ kind: 'count-words', key, args: { text } })));

try {
  await reeve.submit({ kind: 'count-words', key: 'odd', args: { text: 7 } });
} catch (error) {
  if (!isReeveRefusal(error, 'MALFORMED')) throw error;
  console.log(`refused: ${error.message}`);
}

// A worker in the same process: it takes what is queued, renews its lease by reporting, and settles.
for await (const { id } of reeve.list({ statuses: ['queued'], order: 'oldest_first' })) {
  await count(await reeve.claim(id, { worker: 'counter', ttlMs: 30_000 }));
}

async function count(claim: Claim): Promise<void> {
  const { text } = claim.task.args as { text: string };
  const { cancel } = await claim.report({ type: 'accepted' }, { type: 'started' });
  if (cancel !== null) await claim.report({ type: 'cancelled' });
  else await claim.report({ type: 'completed', result: { words: text.split(' ').length } });
}

for (const key of Object.keys(texts)) {
  const { status, result } = await reeve.find(key);
  console.log(`${key} is ${status}: ${JSON.stringify(result)}`);
}
await reeve.close();
