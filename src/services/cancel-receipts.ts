/**
 * Receipts of cancels, from a worker's frame to the authority (lifecycle.md section 6). Not answered when they are
 * kept: a cancel without its receipt is sent again after a re-attach. One whose token is wrong is passed over, it is
 * about no cancel of ours. One that could not be kept for now is told, so that it is said again.
 */
import type { CancelReceipt } from '../gen/reeve/v1/worker_service_pb.js';
import type { Refusal } from '../kernel/refusal.js';
import { receipts as receiptKinds } from '../wire/enum-tables.js';
import { isRetryable } from '../wire/error-table.js';
import { malformedField } from '../wire/refusal-error.js';
import { readEpoch } from '../wire/whole-numbers.js';
import type { Speaker } from './work-stream.js';

/** Resolves with what the frame is rejected with, if at all. Throws MALFORMED before any receipt is applied. */
export function applyReceipts(speaker: Speaker, receipts: readonly CancelReceipt[]): Promise<Refusal | null> {
  const { authority, sessionId, attachment, cause } = speaker;
  const read = receipts.map((receipt, index) => {
    const kind = receiptKinds.read(`receipts[${index}].kind`, receipt.kind);
    if (kind === 'settled') throw malformedField(`receipts[${index}].kind`, 'a settlement says it');
    const epoch = readEpoch('receipts[].epoch', receipt.epoch, index);
    return { taskId: receipt.taskId, epoch, token: receipt.cancellationToken, kind };
  });
  const ours = read.filter(({ taskId, epoch, token }) => authority.tokens.isCancellationToken(token, taskId, epoch));
  return firstRefusal(
    ours.map(async ({ taskId, epoch, kind }) => {
      const answer = await authority.apply({
        taskId,
        intent: { kind: 'receipt', lease: { epoch, sessionId }, acknowledged: kind === 'acknowledged', cause },
        session: { sessionId, attachment, needs: 'not_gone' },
      });
      // Whatever else a receipt is refused with, its claim is over and nobody waits for it.
      return answer.kind === 'refused' && isRetryable(answer.refusal) ? answer.refusal : null;
    }),
  );
}

/** Once all are answered. */
export async function firstRefusal(answers: readonly Promise<Refusal | null>[]): Promise<Refusal | null> {
  return (await Promise.all(answers)).find((refusal) => refusal !== null) ?? null;
}
