/** The agent as others start it: tests and the demonstration; its process is `main.ts`. */
export {
  type BootConfig,
  type BootDecision,
  type BootInterface,
  type BootServices,
  bootDecision,
  type Gate,
  makeGate,
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
  type HeldHostImage,
  type HostImageProgress,
  HostImages,
  Images,
  type WantedHostImage,
} from './images/index.ts';
export { Journal, type JournalOptions } from './journal/index.ts';
export { defaultNetworkFaultLimits, NetworkFaults } from './network-faults.ts';
export { nginxSite } from './nginx-site.ts';
export { type Platform, type RunningAgent, startAgent } from './program.ts';
export {
  AgentSession,
  AttemptEnd,
  type Connection,
  type Executor,
  grpcTransport,
  type OperationContext,
  type SessionOptions,
  type Transport,
  type TransportHandlers,
} from './session/index.ts';
