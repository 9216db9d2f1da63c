/** The agents' sessions: what the control plane hears from racks and sends to them. */

export type { SessionDependencies } from './dependencies.ts';
export { type AgentLimits, defaultAgentLimits } from './limits.ts';
export { type Prefetched, PrefetchProgress } from './prefetch-progress.ts';
export { Quotas } from './quota.ts';
export { RackSession } from './rack-session.ts';
export type { AcknowledgementMeter } from './reports.ts';
export {
  type AgentService,
  type AgentServiceDependencies,
  createAgentService,
  type SessionQueues,
} from './service.ts';
export { sharedBySessions } from './shared.ts';
export type { SessionSink } from './sink.ts';
export { type OutputPiece, StepLogs } from './step-logs.ts';
export { defaultSessionTiming, type SessionTiming } from './timing.ts';
export type { SessionTrust } from './trust.ts';
