/**
 * What one handler speaks through: events of its claim, checked against the limits of the stream before they are
 * numbered. Functions are made when asked for, so that a handler that says nothing costs nothing.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { OutputSchema } from '../../gen/reeve/v1/worker_service_pb.js';
import { refusedLocally } from '../transport/reeve-error.js';
import { requireJsonText } from '../transport/json.js';
import type { Delay, Delays } from './delays.js';
import type { HandlerContext } from './handler.js';
import type { HeldClaim, Saying } from './held-claim.js';
import type { Outbox } from './outbox.js';
import { DeadlineExceeded } from './stop-reasons.js';
import type { WorkTerms } from './work-terms.js';

/** Texts for people are cut here before the server would: it counts bytes, this counts UTF-16 units. */
export const MAX_MESSAGE_LENGTH = 8 * 1024;
export const MAX_REASON_LENGTH = 1024;
/** A checkpoint travels in one claim with the arguments (worker_service.proto, Checkpoint). */
const MAX_CHECKPOINT_BYTES = 131_072;

type OutputContent = Exclude<MessageInitShape<typeof OutputSchema>['content'], undefined>;
type Say<Args extends unknown[]> = (...args: Args) => Promise<void>;

export interface ClaimStage {
  readonly outbox: Outbox;
  readonly terms: WorkTerms;
  readonly delays: Delays;
}

export class ClaimContext implements HandlerContext {
  readonly #held: HeldClaim;
  readonly #outbox: Outbox;
  readonly #terms: WorkTerms;
  readonly #delays: Delays;
  readonly #onOutputsDropped: () => void;
  #deadline: Delay | undefined;
  #ended = false;

  constructor(held: HeldClaim, { outbox, terms, delays }: ClaimStage, onOutputsDropped: () => void) {
    this.#held = held;
    this.#outbox = outbox;
    this.#terms = terms;
    this.#delays = delays;
    this.#onOutputsDropped = onOutputsDropped;
  }

  get signal(): AbortSignal {
    this.#armDeadline();
    return this.#held.stop.signal;
  }

  get progress(): Say<[fraction?: number, message?: string]> {
    return observed(async (fraction, message = '') => {
      if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
        throw refusedLocally('fraction', `${fraction} is not between 0 and 1`);
      }
      const value = { message: message.slice(0, MAX_MESSAGE_LENGTH), ...(fraction !== undefined && { fraction }) };
      return this.#say({ case: 'progress', value });
    });
  }

  get output(): Say<[value: unknown]> {
    return observed(async (value) => {
      const text = requireJsonText(value, 'output');
      const bytes = this.#requireSize('output', Buffer.byteLength(text));
      return this.#output({ case: 'outputJson', value: text }, bytes);
    });
  }

  get binary(): Say<[data: Uint8Array, contentType: string]> {
    return observed(async (data, contentType) => {
      if (!(data instanceof Uint8Array)) throw new TypeError('binary output is a Uint8Array');
      const bytes = this.#requireSize('binary', data.byteLength);
      return this.#output({ case: 'binary', value: { data, contentType } }, bytes);
    });
  }

  get blocked(): Say<[reason: string]> {
    return observed(async (reason) => {
      const room = this.#say({ case: 'blocked', value: { reason: reason.slice(0, MAX_REASON_LENGTH) } });
      this.#held.blocked = true;
      return room;
    });
  }

  get unblocked(): Say<[]> {
    return observed(async () => {
      unblock(this.#held, this.#outbox);
      return this.#room();
    });
  }

  get checkpoint(): Say<[value: unknown]> {
    return observed(async (value) => {
      const checkpointJson = requireJsonText(value, 'checkpoint');
      this.#requireSize('checkpoint', Buffer.byteLength(checkpointJson), MAX_CHECKPOINT_BYTES);
      return this.#say({ case: 'checkpoint', value: { checkpointJson } });
    });
  }

  get committed(): Say<[]> {
    return observed(() => this.#held.committed());
  }

  get leaseSureUntil(): Date {
    return new Date(this.#terms.leaseSureUntilMs);
  }

  /** The handler has ended; nothing ticks on. */
  end(): void {
    this.#ended = true;
    this.#deadline?.cancel();
  }

  #say(saying: Saying): Promise<void> {
    const held = this.#held;
    if (held.phase !== 'open') throw held.stop.reason ?? new Error('the claim is over');
    // A checkpoint is no word of AEP's; it may be saved while blocked.
    if (saying.case !== 'checkpoint') unblock(held, this.#outbox);
    this.#outbox.say(held, saying);
    return this.#room();
  }

  async #room(): Promise<void> {
    const turn = this.#outbox.turn();
    if (turn !== null) await turn;
    const room = this.#outbox.room();
    if (room !== null) await this.#held.stop.orStopped(room);
  }

  #output(content: OutputContent, bytes: number): Promise<void> {
    const held = this.#held;
    const { maxOutputs, maxOutputBytes } = this.#terms;
    // The first one beyond the limit is sent, and makes the task say `output_truncated`; more would say the same.
    if (held.outputs > maxOutputs || held.outputBytes > maxOutputBytes) {
      this.#onOutputsDropped();
      return this.#room();
    }
    held.outputs += 1;
    held.outputBytes += bytes;
    return this.#say({ case: 'output', value: { content } });
  }

  #requireSize(field: string, bytes: number, ownLimit = Infinity): number {
    const allowed = Math.min(this.#terms.maxEventBytes, ownLimit);
    if (bytes > allowed) throw refusedLocally(field, `${bytes} bytes are more than the ${allowed} allowed`);
    return bytes;
  }

  #armDeadline(): void {
    const { deadline } = this.#held.claim;
    if (deadline === undefined || this.#deadline !== undefined) return;
    const terms = this.#terms;
    const arm = () => {
      if (this.#ended || this.#held.phase === 'over') return;
      // Whether the deadline is still this one the authority knows, and it says so for as long as it is heard.
      const sureUntilMs = terms.leaseSureUntilMs + terms.clockOffsetMs;
      const leftMs = Math.max(deadline.getTime(), sureUntilMs) - (Date.now() + terms.clockOffsetMs);
      if (leftMs <= 0) return this.#held.stop.stop(new DeadlineExceeded(deadline));
      // After a stall of this loop, what was heard meanwhile comes first.
      this.#deadline = this.#delays.after(leftMs, () => setImmediate(arm));
    };
    arm();
  }
}

/** A progress that nobody awaits must not end the process when the lease is lost; who awaits it still sees. */
function observed<Args extends unknown[]>(say: Say<Args>): Say<Args> {
  return (...args) => {
    const said = say(...args);
    said.catch(() => undefined);
    return said;
  };
}

/** AEP lets little but `started` and `progress` follow `blocked`. */
export function unblock(held: HeldClaim, outbox: Outbox): void {
  if (!held.blocked) return;
  held.blocked = false;
  outbox.say(held, { case: 'started', value: {} });
}
