/**
 * Who calls, what the caller may do, and where.
 *
 * Invariants:
 * 1. An empty list of a scope means everywhere; a caller with two empty lists is unscoped.
 * 2. A host is in a scope when its rack and its pool are. A whole rack is in a scope only when the
 *    scope names the rack and no pools: a change of a rack affects every pool in it.
 */
import { type Actor, type Host, type RackName, Role, userActor } from '@rackwright/messages';

/** The host label that names its pool. */
export const poolLabel = 'pool';

/** Where a role applies (invariant 1). */
export interface Scope {
  /** "racks/RACK" */
  readonly racks: readonly RackName[];
  readonly pools: readonly string[];
}

/** An authenticated caller. */
export interface Principal {
  /** "user:NAME", "token:NAME" or "oidc:SUBJECT". */
  readonly actor: Actor;
  readonly role: Role;
  readonly scope: Scope;
  /** "tokens/TOKEN"; empty: the identity provider authenticated the caller. */
  readonly token: string;
  /** The identity provider; empty: a token of ours. */
  readonly issuer: string;
  /** Wall time, milliseconds; undefined: no expiry. */
  readonly expireMs: number | undefined;
  /** SHA-256 of the shown secret, hex: distinguishes two tokens of one name. */
  readonly proofSha256: string;
  /** The hash of its sign-in, as in `SignIns`; unset: the call itself came with a token. */
  readonly signInHash?: string;
}

/** Everywhere. */
export const everywhere: Scope = { racks: [], pools: [] };

/** Everything, everywhere: for the process itself, and for tests without a server. */
export const systemPrincipal: Principal = {
  actor: userActor('admin'),
  role: Role.ADMIN,
  scope: everywhere,
  token: '',
  issuer: '',
  expireMs: undefined,
  proofSha256: '',
};

/** Whether the scope excludes nothing. */
export function isUnscoped({ racks, pools }: Scope): boolean {
  return racks.length === 0 && pools.length === 0;
}

/** Where a host is or would be. */
export interface HostLocation {
  /** "racks/RACK" */
  readonly rack: RackName;
  readonly pool: string;
}

/** Where a host is, by its spec and labels. */
export function locationOf(host: Pick<Host, 'spec' | 'labels'> | undefined): HostLocation {
  return { rack: host?.spec?.rack ?? '', pool: host?.labels[poolLabel] ?? '' };
}

/** Whether a host at this location is in the scope. */
export function isInScope({ racks, pools }: Scope, { rack, pool }: HostLocation): boolean {
  return (
    (racks.length === 0 || racks.includes(rack)) && (pools.length === 0 || pools.includes(pool))
  );
}

/** Whether everything in the rack is in the scope (invariant 2). */
export function includesRack({ racks, pools }: Scope, rack: RackName): boolean {
  return pools.length === 0 && (racks.length === 0 || racks.includes(rack));
}

/** The scope in words: "racks/r1, racks/r2, pool gpu". */
export function scopeText(scope: Scope): string {
  if (isUnscoped(scope)) return 'everything';
  return [...scope.racks, ...scope.pools.map((pool) => `pool ${pool}`)].join(', ');
}

/** "viewer", "operator" or "admin". */
export function roleText(role: Role): string {
  const name = Object.entries(Role).find(([, value]) => value === role)?.[0];
  return (name ?? 'unknown').toLowerCase();
}
