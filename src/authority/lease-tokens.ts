/**
 * Tokens derived from the secret of the store: nothing is stored per claim, every replica derives the same, and
 * none can be guessed (lifecycle.md section 1, "Lease").
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface ClaimTokens {
  /** Proves the lease in unary calls. */
  readonly leaseToken: string;
  /** Names the cancellation of this claim towards its worker; proves nothing else. */
  readonly cancellationToken: string;
}

const HALF_BYTES = 16;

export class LeaseTokens {
  private readonly secret: Buffer;

  constructor(secretHex: string) {
    this.secret = Buffer.from(secretHex, 'hex');
  }

  ofClaim(taskId: string, epoch: number): ClaimTokens {
    const digest = createHmac('sha256', this.secret)
      .update(`claim\n${taskId}\n${String(epoch)}`)
      .digest();
    return {
      leaseToken: digest.toString('base64url', 0, HALF_BYTES),
      cancellationToken: digest.toString('base64url', HALF_BYTES),
    };
  }

  ofSession(sessionId: string): string {
    return createHmac('sha256', this.secret).update(`session\n${sessionId}`).digest('base64url');
  }

  isLeaseToken(token: string, taskId: string, epoch: number): boolean {
    return sameText(token, this.ofClaim(taskId, epoch).leaseToken);
  }

  isCancellationToken(token: string, taskId: string, epoch: number): boolean {
    return sameText(token, this.ofClaim(taskId, epoch).cancellationToken);
  }

  isSessionSecret(secret: string, sessionId: string): boolean {
    return sameText(secret, this.ofSession(sessionId));
  }
}

function sameText(given: string, expected: string): boolean {
  const left = Buffer.from(given);
  const right = Buffer.from(expected);
  return left.length === right.length && timingSafeEqual(left, right);
}
