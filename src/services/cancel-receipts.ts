/**
 * Receipts of cancels, from a worker's frame to the authority (lifecycle.md section 6). Not answered: a cancel without
 * its receipt is sent again after a re-attach. One whose token is wrong is passed over, it is about no cancel of ours.
 */
import type { CancelReceipt } from '../gen/reeve/v1/worker_service_pb.js';
import { receipts as receiptKinds } from '../wire/enum-tables.js';
import { malformedField } from '../wire/refusal-error.js';
import type { Speaker } from './work-stream.js';

/** Throws MALFORMED before any is applied. */
export function applyReceipts(speaker: Speaker, receipts: readonly CancelReceipt[]): void {
  const { authority, sessionId, attachment, cause } = speaker;
  const read = receipts.map((receipt, index) => {
    const kind = receiptKinds.read(`receipts[${index}].kind`, receipt.kind);
    if (kind === 'settled') throw malformedField(`receipts[${index}].kind`, 'a settlement says it');
    return { taskId: receipt.taskId, epoch: Number(receipt.epoch), token: receipt.cancellationToken, kind };
  });
  for (const { taskId, epoch, token, kind } of read) {
    if (!authority.tokens.isCancellationToken(token, taskId, epoch)) continue;
    const acknowledged = kind === 'acknowledged';
    void authority.apply({
      taskId,
      intent: { kind: 'receipt', lease: { epoch, sessionId }, acknowledged, cause },
      session: { sessionId, attachment, needs: 'not_gone' },
    });
  }
}
