/**
 * `reeve/authority`: the authority as a library, without a server. Same rules, same store, same history.
 *
 *     const reeve = await openAuthority({ store: 'sqlite:./tasks.db', kinds: ['crawl'] });
 *     const { task } = await reeve.submit({ kind: 'crawl', key: 'site-7', args: { url: '…' } });
 *     const claim = await reeve.claim(task.id);
 *     await claim.report({ type: 'accepted' }, { type: 'started' });
 *     await claim.report({ type: 'completed', result: { pages: 3 } });
 *     await reeve.close();
 */
import type { EmbeddedReeve } from './embedded-reeve.js';
import { type OpenOptions, openEmbedded } from './open-authority.js';

/**
 * Opens the store and takes up what an earlier process left: timers, lost leases, what follows from ended parents.
 * Keeps the process alive until `close`. Throws ReeveRefusal: MALFORMED, STORE_UNAVAILABLE.
 */
export function openAuthority(options: OpenOptions): Promise<EmbeddedReeve> {
  return openEmbedded(options);
}

export type { Actor, ActorType, Reason } from '../kernel/cause.js';
export type { AepState } from '../kernel/aep.js';
export type { Blocker, BlockerKind, Explanation, Holder, NextTimer } from '../kernel/explain.js';
export type { CapabilityClass } from '../kernel/placement.js';
export type { Dependency, ParentLink } from '../kernel/admission/family-policy.js';
export type { Ending, TaskError } from '../kernel/record.js';
export type { EventType } from '../kernel/event.js';
export type { ExecutionTarget } from '../kernel/admission/application.js';
export type { RefusalReason } from '../kernel/refusal.js';
export type { RetryPolicyInput } from '../kernel/admission/retry-policy.js';
export type { TaskPolicy } from '../kernel/admission/policy.js';
export type { TaskStatus } from '../kernel/status.js';
export type { ActionKindSetting } from '../deployment/action-kind-setting.js';
export type { Cancelled } from './cancelled.js';
export type { Claim, Reported } from './claim.js';
export type { CommitListener, CommitsOptions } from './commits.js';
export type { CancelOptions, ClaimOptions, EmbeddedReeve, ResumeOptions } from './embedded-reeve.js';
export type { Commit, TaskEvent } from './event.js';
export type { Fact, Transitioned } from './fact.js';
export type { CompletionProof, Intent, LeaseInput, ReasonInput, TransitionOptions } from './intent.js';
export type { JsonObject, JsonValue } from './json.js';
export type { EventsOptions, ListOptions } from './listing.js';
export type { OpenOptions } from './open-authority.js';
export { isReeveRefusal, ReeveRefusal } from './refusal.js';
export type { Saying } from './saying.js';
export type { CompletionInput, ErrorInput, ExecutionDetail, FailureInput, TimeoutInput } from './settlement.js';
export type { CallerActor, PolicySettings, Submission } from './submission.js';
export type { Submitted, SubmitVerdict } from './submitted.js';
export type { Task, TaskDetails } from './task.js';
