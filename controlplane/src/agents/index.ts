/** The agents' sessions: what the control plane hears from racks and sends to them. */

export type { AcknowledgementMeter } from './base/acknowledgement.ts';
export {
  type BmcQuestion,
  type BmcReadResult,
  BmcReads,
  type BmcReadsDependencies,
} from './base/bmc-reads.ts';
export {
  type ConsoleQuestion,
  type ConsoleViewResult,
  ConsoleViews,
  type ConsoleViewsDependencies,
  type ViewerOutput,
} from './base/console-views.ts';
export type { SessionDependencies } from './base/dependencies.ts';
export {
  type AgentLimits,
  agentLimitsOf,
  defaultAgentLimits,
  type RackLimits,
} from './base/limits.ts';
export { PrefetchProgress, type PrefetchState } from './base/prefetch-progress.ts';
export { ReadPaces } from './base/quota.ts';
export type { SessionRefusal } from './base/session-refusal.ts';
export type { SessionSink } from './base/sink.ts';
export { type OutputPiece, StepLogs } from './base/step-logs.ts';
export { defaultSessionTiming, type SessionTiming } from './base/timing.ts';
export type { SessionTrust } from './base/trust.ts';
export { RackSession } from './stream/rack-session.ts';
export {
  type AgentService,
  type AgentServiceDependencies,
  createAgentService,
  type SessionQueues,
} from './stream/service.ts';
export { sharedBySessions } from './stream/shared.ts';
