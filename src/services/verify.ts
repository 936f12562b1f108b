/**
 * Verify: pages of an audit of the store (admin_service.proto). Reads only.
 */
import { decodeCursor, encodeCursor } from '../audit/audit-cursor.js';
import type { AuditedPage, Auditor } from '../audit/auditor.js';
import type { FindingSchema, VerifyRequest, VerifyResponseSchema } from '../gen/reeve/v1/admin_service_pb.js';
import type { Finding } from '../audit/findings.js';
import { refuse } from '../kernel/refusal.js';
import { readVerify } from '../wire/admin-codec.js';
import type { Fields } from '../wire/message-fields.js';
import type { TokenMint } from '../wire/opaque-token.js';
import { RefusalError } from '../wire/refusal-error.js';

export class Verifications {
  constructor(
    private readonly auditor: Auditor,
    private readonly tokens: TokenMint,
  ) {}

  async verify(request: VerifyRequest): Promise<Fields<typeof VerifyResponseSchema>> {
    const { taskIds, limit, position, purpose } = readVerify(request, this.tokens);
    const cursor = position === null ? null : decodeCursor(position);
    const page: AuditedPage = await this.auditor.page({ taskIds, cursor, limit });
    const [unknown] = page.unknown;
    if (unknown !== undefined) {
      throw new RefusalError(refuse('TASK_NOT_FOUND', 'there is no such task', { task_id: unknown }));
    }
    return {
      tasks: BigInt(page.tasks),
      events: BigInt(page.events),
      links: BigInt(page.links),
      tombstones: BigInt(page.tombstones),
      keys: BigInt(page.keys),
      sessions: BigInt(page.sessions),
      permits: BigInt(page.permits),
      findings: page.findings.map(findingMessage),
      nextPageToken: page.next === null ? '' : this.tokens.give(purpose, encodeCursor(page.next)),
    };
  }
}

export function findingMessage(finding: Finding): Fields<typeof FindingSchema> {
  const { taskId, invariant, detail, eventNumber } = finding;
  return { taskId, invariant, detail, eventNumber: BigInt(eventNumber) };
}
