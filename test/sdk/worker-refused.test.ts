// What the server takes in no form: it must neither be hammered for it nor hear it for ever, and only the task whose
// word it was may suffer.

import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { Completion } from '../../src/sdk/worker.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

let fixture: WorkerFixture;

beforeEach(async () => {
  fixture = await WorkerFixture.open();
});

afterEach(() => fixture.close());

const POISON = 'poison';
const handler = (claim: { readonly taskId: string }) => Promise.resolve(claim.taskId === 't1' ? POISON : 'fine');

/** How a frame with the poisoned event is refused. */
type Refuse = (session: ScriptedSession, frameId: bigint) => void;

/** Judges everything but the poison, over as many streams as the worker opens, until both tasks have ended. */
class PoisonedServer {
  /** How each task ended. */
  readonly endings = new Map<string, string>();
  refused = 0;
  private readonly marks = new Map([
    ['t1', 0],
    ['t2', 0],
  ]);
  private finish: () => void = () => undefined;

  constructor(private readonly refuse: Refuse) {}

  async run(): Promise<void> {
    const finished = new Promise<void>((resolve) => (this.finish = resolve));
    const first = await fixture.start(handler);
    first.claim(claimOf('t1'), claimOf('t2'));
    void this.hear(first);
    while (this.endings.size < 2) await Promise.race([this.nextStream(), finished]);
  }

  private async nextStream(): Promise<void> {
    const { marks, endings } = this;
    void this.hear(
      await ScriptedSession.welcome(fixture.server, {
        // Read when the stream is there.
        get leasesKept() {
          const kept = [...marks].filter(([taskId]) => !endings.has(taskId));
          return kept.map(([taskId, mark]) => ({ taskId, epoch: 1n, answeredThrough: BigInt(mark) }));
        },
      }),
    );
  }

  private async hear(session: ScriptedSession): Promise<void> {
    for (;;) {
      const { frameId, frame } = await session.peer.frames.next();
      if (frame.case !== 'events') continue;
      const { events } = frame.value;
      if (events.some(({ event }) => event.case === 'completed' && event.value.resultJson?.includes(POISON))) {
        this.refused += 1;
        this.refuse(session, frameId);
        continue;
      }
      for (const { taskId, eventSeq, event } of events) {
        this.marks.set(taskId, Math.max(this.marks.get(taskId) ?? 0, Number(eventSeq)));
        if (event.case === 'failed') this.endings.set(taskId, `failed ${event.value.error?.code}`);
        if (event.case === 'completed') this.endings.set(taskId, 'completed');
      }
      for (const [taskId, mark] of this.marks) session.judge(taskId, mark);
      if (this.endings.size === 2) this.finish();
    }
  }
}

test.each<[string, number, Refuse]>([
  [
    'frame',
    // Once with the others, once alone.
    2,
    (session, frameId) => session.reject(frameId, ErrorReason.MALFORMED, status.INVALID_ARGUMENT),
  ],
  [
    'stream',
    // Once with the others, three times alone: a stream may end by chance.
    4,
    (session) => session.peer.fail({ code: status.INVALID_ARGUMENT, reason: 'MALFORMED' }),
  ],
])('when a %s is refused for good only the task whose event it was fails, after %i times', async (_, times, refuse) => {
  const server = new PoisonedServer(refuse);
  await server.run();
  expect(Object.fromEntries(server.endings)).toEqual({ t1: 'failed event_refused', t2: 'completed' });
  expect(server.refused).toBe(times);
});

test('a stream that is refused soon after each Welcome is opened after longer and longer waits', async () => {
  let session = await fixture.start(fixture.held);
  for (let times = 0; times < 5; times += 1) {
    session.peer.fail({ code: status.UNAVAILABLE, reason: 'STORE_UNAVAILABLE' });
    if (times < 4) session = await ScriptedSession.welcome(fixture.server);
  }
  const waits: number[] = [];
  while (waits.length < 5) {
    const notice = await fixture.notices.find((each) => each.type === 'detached');
    if (notice.type === 'detached') waits.push(notice.retryInMs);
  }
  // 100 ms doubled four times, and at least half of that.
  expect(waits.at(-1)).toBeGreaterThanOrEqual(800);
});

test('an ending that no frame holds is not said: the task fails and says why', async () => {
  const evidenceRefs = ['x'.repeat(1_600_000)];
  const session = await fixture.start(() => new Completion({ result: 'fine', evidenceRefs }));
  session.claim(claimOf('t1'));
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  expect(await session.event()).toMatchObject({
    eventSeq: 3n,
    event: {
      case: 'failed',
      value: {
        error: {
          code: 'handler_error',
          retryable: false,
          message: expect.stringMatching(/fit into a frame/) as string,
        },
      },
    },
  });
});
