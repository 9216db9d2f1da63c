/** What simulations and tests need of the control plane; the program itself is `main.ts`. */
export {
  type AgentService,
  createAgentService,
  createSessionRegistry,
  defaultSessionTiming,
  RackSession,
  type SessionDependencies,
  type SessionSink,
  type SessionTiming,
  StepLogs,
} from './agents/index.ts';
export { Discovery } from './discovery/index.ts';
export { Following } from './following/index.ts';
export { stateDiagram } from './host/diagram.ts';
export {
  defaultTiming,
  type EngineTiming,
  Hosts,
  type HostsDependencies,
  reservedValues,
} from './host/index.ts';
export { createSecrets, type Secrets } from './identity/secrets.ts';
export { freezeShared } from './records/index.ts';
export { createHost, createOperatorServices, type RpcDependencies } from './rpc/index.ts';
export { createWebhookCaller, createWorkflowParts } from './workflow/index.ts';
