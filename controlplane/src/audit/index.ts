/** What people, agents and the system did, recorded once: the audit stream. */
export { type AuditEvent, type AuditSink, credentialSent } from './event.ts';
export { auditCalls, auditedGuard, type CallAudit, identifyAudited } from './intercept.ts';
export { type AuditSearch, searchAudit } from './search.ts';
export { type AuditTrail, createAuditTrail } from './trail.ts';
