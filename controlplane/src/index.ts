/** The parts of the control plane for simulations and tests; the program itself is `main.ts`. */

export { trustedSignIn } from './access/index.ts';
export {
  type AgentService,
  createAgentService,
  defaultSessionTiming,
  RackSession,
  type SessionDependencies,
  type SessionSink,
  type SessionTiming,
  StepLogs,
  sharedBySessions,
} from './agents/index.ts';
export { parseConfig } from './config.ts';
export { type ControlPlane, startControlPlane } from './control-plane.ts';
export { Discovery } from './discovery/index.ts';
export { FleetView } from './fleet-view/index.ts';
export { StoreFollower } from './following/index.ts';
export { stateDiagram } from './host/diagram.ts';
export {
  createSessionRegistry,
  defaultTiming,
  type EngineTiming,
  Hosts,
  type HostsDependencies,
  reservedValues,
} from './host/index.ts';
export type { TrustTiming } from './identity/index.ts';
export { Pools, type ResolveImage, resolveWith } from './pool/index.ts';
export { freezeShared } from './records/index.ts';
export { usualBytes } from './records/usual-bytes.ts';
export { createSecrets, type Secrets } from './secrets/index.ts';
export { createHost, createOperatorServices, type RpcDependencies } from './services/index.ts';
export { createWebhookCaller, createWorkflowParts } from './workflow/index.ts';
