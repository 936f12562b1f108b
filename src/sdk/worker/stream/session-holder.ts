/**
 * Keeps a session attached while the loop that does the work computes and its stream has ended: without it a cut
 * connection in that time would cost every lease. It only renews: what is said on such a stream is said again when the
 * loop attaches with what it knows, and that stream takes the place of this one.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ReattachSchema, WorkRequestSchema, WorkResponseSchema } from '../../../gen/reeve/v1/worker_service_pb.js';
import type { ReeveError } from '../../transport/reeve-error.js';
import { ReattachPause } from '../reattach-pause.js';
import type { LinkListener } from './link.js';
import { ATTRACTS_CLAIMS_FOR_MS, type StreamKeeper } from './stream-keeper.js';
import type { WorkLoop } from './work-loop.js';

export interface HolderOptions {
  readonly loop: WorkLoop;
  readonly open: (hello: Uint8Array, slots: number, listener: LinkListener) => StreamKeeper;
  readonly wedgedAfterMs: number;
}

export class SessionHolder {
  private readonly reattachPause = new ReattachPause();
  private hello: Uint8Array | null = null;
  private identity: { readonly sessionId: string; readonly sessionSecret: string } | null = null;
  private keeper: StreamKeeper | null = null;
  private notBefore = 0;
  /** Of the stream that is kept here; null before its Welcome. */
  private welcomedAtMs: number | null = null;

  constructor(private readonly options: HolderOptions) {}

  /** The loop attaches by itself. */
  giveWay(hello: Uint8Array): void {
    this.hello = hello;
    this.keeper?.give('the worker attaches by itself');
    this.keeper = null;
  }

  /** @param frame a Welcome. */
  welcomed(frame: Uint8Array): void {
    const { frame: content } = fromBinary(WorkResponseSchema, frame);
    if (content.case !== 'welcome') return;
    const { sessionId, sessionSecret } = content.value;
    this.identity = { sessionId, sessionSecret };
  }

  /** The stream of the loop's has ended. */
  ended(ending: ReeveError): void {
    if (ending.reason === 'SESSION_GONE') this.identity = null;
  }

  /** While the loop has no stream: attaches for it if it is silent. */
  look(): void {
    const { loop, wedgedAfterMs } = this.options;
    const { silentMs } = loop;
    if (this.keeper !== null) return this.keeper.look();
    if (this.hello === null || this.identity === null || silentMs <= ATTRACTS_CLAIMS_FOR_MS) return;
    if ((wedgedAfterMs > 0 && silentMs > wedgedAfterMs) || performance.now() < this.notBefore) return;
    this.keeper = this.attach(this.hello, this.identity);
  }

  private attach(lastHello: Uint8Array, identity: { sessionId: string; sessionSecret: string }): StreamKeeper {
    const message = fromBinary(WorkRequestSchema, lastHello);
    if (message.frame.case !== 'hello') throw new Error('the first frame of a link is Hello');
    const hello = message.frame.value;
    const held = this.options.loop.held().map(({ taskId, epoch }) => ({ taskId, epoch, answeredThrough: 0n }));
    hello.slots = 0;
    hello.reattach = create(ReattachSchema, { ...identity, held });
    this.welcomedAtMs = null;
    const keeper: StreamKeeper = this.options.open(toBinary(WorkRequestSchema, message), 0, {
      onFrame: (bytes) => {
        this.welcomedAtMs ??= performance.now();
        this.welcomed(bytes);
      },
      onRenewed: () => undefined,
      onUnknownFrame: () => undefined,
      onWritable: () => undefined,
      onEnd: (ending) => {
        this.ended(ending);
        if (this.keeper === keeper) this.keeper = null;
        const livedMs = this.welcomedAtMs === null ? null : performance.now() - this.welcomedAtMs;
        this.notBefore = performance.now() + this.reattachPause.after({ ending, livedMs, tookWords: false });
      },
    });
    return keeper;
  }
}
