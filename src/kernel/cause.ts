/**
 * Who caused a change and why: actor, authenticated principal, source, reason, causation (lifecycle.md section 4).
 * Every fact carries one. Which actor types a caller may claim is decided here, nowhere else.
 */

export type ActorType =
  | 'producer'
  | 'worker'
  | 'operator'
  | 'schedule'
  | 'reaper'
  | 'parent'
  | 'dependency'
  | 'webhook'
  | 'recovery'
  | 'admin';

export interface Actor {
  readonly type: ActorType;
  readonly id: string;
}

export interface Reason {
  /** Three dotted segments, e.g. `run.failed.lease_attempts_exhausted`. */
  readonly code: string;
  readonly summary: string;
  readonly evidenceRefs: readonly string[];
}

export type Source = 'rpc' | 'stream' | 'cli' | 'schedule' | 'aep' | 'embedded' | 'authority';

export interface Cause {
  readonly actor: Actor;
  /** The authenticated identity, set by the server; `anonymous` without authentication. */
  readonly principal: string;
  /** The door it came by (a `Source`), or what the caller says of its own. */
  readonly source: string;
  readonly reason: Reason | null;
  /** The originating event or operation id. */
  readonly causation: string | null;
  /** Epoch ms at which a fact truly happened, when that was proved to be earlier than its commit. */
  readonly authoritativeAt: number | null;
}

export const ANONYMOUS = 'anonymous';

/** The actor types that a caller may claim for itself; the rest are the authority's own. */
export function mayClaimActor(type: ActorType): boolean {
  return type === 'producer' || type === 'operator' || type === 'webhook';
}

/** A cause of the authority's own making: nobody asked, a rule applied. */
export function authorityCause(type: ActorType, reason: Reason, causation: string | null = null): Cause {
  return {
    actor: { type, id: 'reeve' },
    principal: 'reeve',
    source: 'authority',
    reason,
    causation,
    authoritativeAt: null,
  };
}
