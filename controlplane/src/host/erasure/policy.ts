/** What a site asks of an erasure: how it is read back, and what becomes of hidden areas. Pure. */
import { type FleetSpec, HiddenAreas, type HostSpec } from '@rackwright/api';
import {
  defaultScopePolicy,
  defaultVerificationPolicy,
  type ErasureMethod,
  type ScopePolicy,
  type VerificationPolicy,
  verificationPolicyOf,
} from '@rackwright/erasure';

type Cleaning = Pick<HostSpec, 'cleaning'>;

/** The host's own words go before the fleet's. */
export function verificationPolicy(
  { cleaning }: Cleaning,
  fleet: FleetSpec | undefined,
): VerificationPolicy {
  const ofFleet = verificationPolicyOf(fleet?.verification, defaultVerificationPolicy);
  return verificationPolicyOf(cleaning?.verification, ofFleet);
}

/** Which devices are erased by which method. */
export function scopePolicy(
  cleaning: HostSpec['cleaning'],
  method: 'strongest' | ErasureMethod,
): ScopePolicy {
  const remove = cleaning?.hiddenAreas === HiddenAreas.REMOVE;
  return { ...defaultScopePolicy, method, hiddenAreas: remove ? 'remove' : 'refuse' };
}
