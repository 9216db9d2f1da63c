/** Trust: the control plane's own identity, its agents' certificates, its secrets. */
export {
  type AgentTrust,
  createJoinToken,
  type IssuedCertificate,
  identifyAgent,
  issueCertificate,
  revokeAgent,
} from './agents.ts';
export { type Authorities, openAuthorities, type TrustNow } from './authorities.ts';
export { makeAuthority } from './authority-record.ts';
export {
  type Identity,
  type IdentityOptions,
  type OwnIdentity,
  openIdentity,
  withAuthorities,
} from './identity.ts';
export { IdentityError } from './owner-only.ts';
export { RackKeys } from './rack-keys.ts';
export {
  advanceAuthority,
  authoritiesMax,
  authorityAt,
  defaultTrustTiming,
  type RackTrust,
  type TrustTiming,
  trustFaults,
  waitsOf,
} from './rotation.ts';
export { createSessionTrust } from './session-trust.ts';
