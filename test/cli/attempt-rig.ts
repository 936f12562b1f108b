// One attempt done by a real child program, with everything it says written down instead of sent.

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type ChildAttemptOptions, runChildAttempt } from '../../src/cli/exec/child-attempt.js';
import type { Rejected } from '../../src/cli/exec/saying.js';
import { ClaimSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { JsonText } from '../../src/sdk/transport/json.js';
import { Claim } from '../../src/sdk/worker/claim.js';
import type { HandlerContext } from '../../src/sdk/worker/handler.js';

export interface Attempt {
  /** What it said, in order. */
  readonly said: readonly (readonly unknown[])[];
  readonly rejected: readonly (Rejected & { readonly lineNumber: number })[];
  /** What the handler returned or threw. */
  readonly end: Promise<unknown>;
  readonly stop: (reason: Error) => void;
  /** Resolves when something of this kind was said. */
  readonly heard: (kind: string) => Promise<void>;
}

export function startAttempt(
  command: string,
  options: Partial<ChildAttemptOptions> = {},
  args: object = {},
  claimed: MessageInitShape<typeof ClaimSchema> = {},
): Attempt {
  const said: (readonly unknown[])[] = [];
  const rejected: (Rejected & { readonly lineNumber: number })[] = [];
  const waiting: { kind: string; resolve: () => void }[] = [];
  const stop = new AbortController();
  const say =
    (kind: string) =>
    async (...content: readonly unknown[]) => {
      said.push([kind, ...content.map((value) => (value instanceof JsonText ? value.toJSON() : value))]);
      for (const each of waiting) if (each.kind === kind) each.resolve();
    };
  const context: HandlerContext = {
    signal: stop.signal,
    progress: say('progress'),
    output: say('output'),
    binary: say('binary'),
    blocked: say('blocked'),
    unblocked: say('unblocked'),
    checkpoint: say('checkpoint'),
    committed: async () => undefined,
    leaseSureUntil: new Date(0),
  };
  const claim = new Claim(
    create(ClaimSchema, {
      taskId: 'task-1',
      epoch: 7n,
      generation: 2,
      attempt: 1,
      maxAttempts: 3,
      actionKind: 'agent',
      argsJson: JSON.stringify(args),
      queue: 'default',
      namespace: 'default',
      ...claimed,
    }),
  );
  const end = runChildAttempt(claim, context, {
    command,
    killAfterMs: 10_000,
    closeStdin: false,
    onRejected: (_taskId, lineNumber, reason) => rejected.push({ lineNumber, ...reason }),
    ...options,
  }).catch((error: unknown) => error);
  return {
    said,
    rejected,
    end,
    stop: (reason) => stop.abort(reason),
    heard: (kind) =>
      said.some(([word]) => word === kind)
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push({ kind, resolve })),
  };
}

/** The same to its end. */
export async function runAttempt(...asked: Parameters<typeof startAttempt>) {
  const attempt = startAttempt(...asked);
  return { ...attempt, end: await attempt.end };
}

/** A command line that runs a JavaScript program with this node. */
export function node(source: string): string {
  return `exec '${process.execPath}' -e '${source.replaceAll("'", `'\\''`)}'`;
}
