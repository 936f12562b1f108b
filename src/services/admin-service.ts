/**
 * AdminService: every method of the contract and the file that answers it.
 */
import { Auditor } from '../audit/auditor.js';
import { Repairs } from '../audit/repairs.js';
import type { Authority } from '../authority/authority.js';
import type { QuietPeriod } from '../dispatcher/quiet-period.js';
import type { AdminService } from '../gen/reeve/v1/admin_service_pb.js';
import { refuse } from '../kernel/refusal.js';
import type { TokenMint } from '../wire/opaque-token.js';
import { RefusalError } from '../wire/refusal-error.js';
import type { Handlers } from './call.js';
import { RepairCalls } from './repair.js';
import { TaskViews } from './task-views.js';
import { Verifications } from './verify.js';

export interface AdminServiceContext {
  readonly authority: Authority;
  readonly quiet: Pick<QuietPeriod, 'quietSince'>;
  readonly tokens: TokenMint;
}

export function adminService({ authority, quiet, tokens }: AdminServiceContext): Handlers<typeof AdminService> {
  const auditor = new Auditor(authority, () => quiet.quietSince());
  const verifications = new Verifications(auditor, tokens);
  const repairs = new RepairCalls(new Repairs(authority, auditor), new TaskViews(authority));
  return {
    verify: (request) => verifications.verify(request),
    repair: (request, call) => repairs.repair(request, call),
    // Not built yet (docs/decisions/0004-what-is-not-there-yet.md).
    purge: () => Promise.reject(new RefusalError(refuse('UNSUPPORTED', 'Purge is not served by this version'))),
  };
}
