/** The agent as others start it: tests and the demonstration; its process is `main.ts`. */
export {
  type BootConfig,
  type BootDecision,
  type BootGate,
  type BootInterface,
  type BootServices,
  bootDecision,
  makeBootGate,
  startBoot,
} from './boot/index.ts';
export { type AgentConfig, parseConfig } from './config.ts';
export { type AgentCore, type CoreParts, openCore } from './core.ts';
export {
  type AgentIdentity,
  IdentityFiles,
  IdentityRenewal,
  join,
  readKey,
} from './identity/index.ts';
export {
  BlobCache,
  defaultAdmissionLimits,
  defaultRetryDelaysMs,
  type FromRegistry,
  type FromWeb,
  type HostImageProgress,
  HostImages,
  Images,
  type PinnedHostImage,
  type WantedHostImage,
} from './images/index.ts';
export { Journal, type JournalOptions } from './journal/index.ts';
export { AgentNetworkFaults, defaultNetworkFaultLimits } from './network-faults.ts';
export { nginxSite } from './nginx-site.ts';
export { type AgentPlatform, type RunningAgent, startAgent } from './program.ts';
export {
  AgentSession,
  AttemptEnd,
  type Executor,
  grpcTransport,
  type OperationContext,
  type SessionOptions,
  type SessionTransport,
  type StreamConnection,
  type TransportHandlers,
} from './session/index.ts';
export { work } from './work.ts';
