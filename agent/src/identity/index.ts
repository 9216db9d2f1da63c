/** The agent's identity: made once, shown by certificate, renewed past half of its life. */
export { clockWarning } from './diagnosis.ts';
export { isKeyOver, join } from './enrolment.ts';
export { type AgentIdentity, type AgentKeyPair, IdentityFiles, readKey } from './identity.ts';
export { IdentityRenewal } from './renewal.ts';
