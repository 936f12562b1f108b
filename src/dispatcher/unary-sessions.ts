/**
 * Sessions of one claim, for callers without a stream (lifecycle.md section 7): opened by Transition{claim}, renewed and
 * told by Report, over with their claim. A row like any other, so the reaper takes what is not renewed; nothing of them
 * is kept in memory. A report may also speak for a claim of a stream's session, which it renews and never ends.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer } from '../authority/intent-work.js';
import type { ReportOutcome } from '../authority/report-work.js';
import { storeRefusal } from '../authority/store-refusal.js';
import { sessionGone } from '../authority/session-work.js';
import type { Cause } from '../kernel/cause.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { SessionRow } from '../store/commit-plan.js';
import type { ClaimReport } from './dispatcher.js';
import { endAt } from './session-ends.js';
import type { Sessions } from './sessions.js';

/** The first attachment is the only one: there is no stream to attach. */
const UNARY_ATTACHMENT = 1;
const SESSION_ID_BYTES = 12;
/** A stream that attaches meanwhile raises the attachment; then its row is looked at again. */
const TRIES = 4;
const HELLO_JSON = '{"unary":true}';

export type Renewed =
  { readonly ok: true; readonly row: SessionRow } | { readonly ok: false; readonly refusal: Refusal };

export class UnarySessions {
  private accepting = true;

  constructor(
    private readonly authority: Authority,
    private readonly sessions: Sessions,
  ) {}

  /** No more of them; those that are go on. */
  close(): void {
    this.accepting = false;
  }

  /**
   * A session of its own that claims one task, by the intent that `apply` makes for it. One that came to hold nothing is
   * ended at once.
   */
  async claim(
    workerName: string,
    ttlMs: number,
    apply: (session: SessionRow) => Promise<IntentAnswer>,
  ): Promise<IntentAnswer> {
    const opened = await this.open(workerName, ttlMs);
    if (!opened.ok) return { kind: 'refused', refusal: opened.refusal, record: null };
    const answer = await apply(opened.row);
    // Whether it was committed is not known: a repetition of the key finds out, and until then the session lives.
    const unknown = answer.kind === 'refused' && answer.refusal.reason === 'OUTCOME_UNKNOWN';
    if (answer.kind !== 'applied' && !unknown) await this.end(opened.row);
    return answer;
  }

  private async open(workerName: string, ttlMs: number): Promise<Renewed> {
    if (!this.accepting)
      return { ok: false, refusal: refuse('DRAINING', 'the service is stopping; connect elsewhere') };
    const now = this.authority.now();
    const row: SessionRow = {
      sessionId: this.authority.random.token(SESSION_ID_BYTES),
      state: 'live',
      expiresAt: now + ttlMs,
      attachment: UNARY_ATTACHMENT,
      ttlMs,
      lingerMs: null,
      workerName,
      helloJson: HELLO_JSON,
      createdAt: now,
    };
    const written = await this.authority.writeSession({ kind: 'open', session: row });
    if (written.kind === 'done') return { ok: true, row };
    return { ok: false, refusal: written.kind === 'refused' ? written.refusal : sessionGone() };
  }

  /** Its claim is over, or it never had one. One that a stream has opened is left to its stream. */
  async end(row: SessionRow): Promise<void> {
    if (row.helloJson !== HELLO_JSON) return;
    const { sessionId, attachment } = row;
    const end = endAt(this.authority.now(), 'claim_ended');
    await this.authority.writeSession({ kind: 'end', sessionId, attachment, end });
  }

  /** The holder was heard from. SESSION_GONE when it is too late. */
  async renew(sessionId: string): Promise<Renewed> {
    try {
      for (let tries = 0; tries < TRIES; tries++) {
        const row = await this.authority.store.loadSession(sessionId);
        if (row === null || row.state === 'gone') break;
        const { attachment } = row;
        const expiresAt = this.authority.now() + row.ttlMs;
        const written = await this.authority.writeSession({ kind: 'renew', sessionId, attachment, expiresAt });
        if (written.kind === 'refused') return { ok: false, refusal: written.refusal };
        if (written.kind === 'done') return { ok: true, row: { ...row, expiresAt } };
      }
      return { ok: false, refusal: sessionGone() };
    } catch (error) {
      return { ok: false, refusal: storeRefusal(error) };
    }
  }

  /** Judges what was said, proved by a lease token; a stream of the same session learns what is answered. */
  report(
    sessionId: string,
    attachment: number | null,
    claim: ClaimReport & { readonly answeredThrough: number },
    cause: Cause,
  ): Promise<ReportOutcome> {
    const { taskId, generation, epoch, events, weightBytes } = claim;
    const session = this.sessions.get(sessionId);
    const held = session?.held.get(taskId);
    const known = (): number => (held?.epoch === epoch ? held.answeredThrough : 0);
    const answeredThrough = (): number => Math.max(known(), claim.answeredThrough);
    const chance = this.authority.random.chance();
    const report = { sessionId, generation, epoch, answeredThrough: answeredThrough(), events, chance, cause };
    return new Promise((resolve) => {
      this.authority.report({ taskId, report, attachment, weightBytes, answeredThrough }, (outcome) => {
        if (held?.epoch === epoch && outcome.kind === 'judged') {
          held.answeredThrough = Math.max(held.answeredThrough, outcome.judgedThrough);
          held.namedAt = this.authority.clock.monotonicMs();
        }
        resolve(outcome);
      });
    });
  }
}
