/** The agent's identity: made once, shown by certificate, renewed at half life. */
export { join } from './enrolment.ts';
export { type AgentIdentity, type AgentKey, IdentityFiles, readKey } from './identity.ts';
export { IdentityRenewal } from './renewal.ts';
