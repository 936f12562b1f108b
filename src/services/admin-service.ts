/**
 * AdminService: every method of the contract and the file that answers it.
 */
import { Auditor } from '../audit/auditor.js';
import { Repairs } from '../audit/repairs.js';
import type { QuietPeriod } from '../dispatcher/quiet-period.js';
import type { AdminService } from '../gen/reeve/v1/admin_service_pb.js';
import type { TokenMint } from '../wire/opaque-token.js';
import type { Handlers } from './call.js';
import { type PurgeContext, Purges } from './purge.js';
import { RepairCalls } from './repair.js';
import { TaskViews } from './task-views.js';
import { Verifications } from './verify.js';

export interface AdminServiceContext extends PurgeContext {
  readonly quiet: Pick<QuietPeriod, 'quietSince'>;
  readonly tokens: TokenMint;
  readonly onRepaired: (details: Readonly<Record<string, unknown>>) => void;
}

export function adminService(context: AdminServiceContext): Handlers<typeof AdminService> {
  const { authority, quiet, tokens, onRepaired } = context;
  const auditor = new Auditor(authority, () => quiet.quietSince());
  const verifications = new Verifications(auditor, tokens);
  const repairs = new RepairCalls(new Repairs(authority, auditor), new TaskViews(authority), onRepaired);
  const purges = new Purges(context);
  return {
    verify: (request) => verifications.verify(request),
    repair: (request, call) => repairs.repair(request, call),
    purge: (request, call) => purges.purge(request, call),
  };
}
