// Submits a task, follows it, and prints its result.
// Node 22.18 and later run it as it is.
//   npm run build && node examples/typescript/greet-client.ts Ada

import { connect, TaskFailed } from 'reeve/client';

const [name = 'Ada'] = process.argv.slice(2);
const reeve = connect(process.env['REEVE_ADDRESS'] ?? '127.0.0.1:7450');

// The same key is the same task, however often this is run.
const { task, created } = await reeve.submit({ kind: 'agent', key: `greet ${name}`, args: { name } });
console.log(created ? `admitted ${task.id}` : `known as ${task.id}`);

for await (const event of reeve.watch(task.id)) console.log(event.type, event.payload);

try {
  console.log((await reeve.result(task.id)).result);
} catch (error) {
  if (!(error instanceof TaskFailed)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
await reeve.close();
