/**
 * AdminService: every method of the contract that is served, and the file that answers it.
 */
import type { AdminService } from '../gen/reeve/v1/admin_service_pb.js';
import { unsupportedMethod } from '../wire/refusal-error.js';
import type { Handlers } from './call.js';
import { type PurgeContext, Purges } from './purge.js';

export function adminService(context: PurgeContext): Handlers<typeof AdminService> {
  const purges = new Purges(context);
  return {
    verify: () => Promise.reject(unsupportedMethod('Verify')),
    repair: () => Promise.reject(unsupportedMethod('Repair')),
    purge: (request, call) => purges.purge(request, call),
  };
}
