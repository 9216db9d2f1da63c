/** Trust: the control plane's own identity, its agents' certificates, its secrets. */
export { createTokenGuard } from './admin-token.ts';
export {
  type AgentTrust,
  createJoinToken,
  type IssuedCertificate,
  identifyAgent,
  issueCertificate,
} from './agents.ts';
export { type Identity, type IdentityOptions, openIdentity } from './identity.ts';
export { IdentityError } from './owner-only.ts';
