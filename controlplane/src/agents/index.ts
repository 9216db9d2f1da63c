export {
  defaultSessionTiming,
  RackSession,
  type SessionDependencies,
  type SessionSink,
  type SessionTiming,
} from './rack-session.ts';
export { createSessionRegistry, type LiveSession, type SessionRegistry } from './registry.ts';
export { type AgentServiceDependencies, createAgentService } from './service.ts';
