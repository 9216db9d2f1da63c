/** The agent's side of the protocol (DESIGN §3). */

export type { BootState } from './boot-snapshot.ts';
export type { SessionBrake } from './brake.ts';
export {
  AttemptEnd,
  type BootGrantState,
  type Credential,
  type ExecutedKind,
  type Executor,
  type OperationContext,
  type PowerReadings,
  type Progress,
} from './executor.ts';
export type { ObservationsInit } from './facts.ts';
export type { BindOutcome, Grants } from './grants.ts';
export { grpcTransport } from './grpc.ts';
export type { HandOff, HandOffState } from './hand-off.ts';
export { type SessionLimits } from './limits.ts';
export type { LinkStatus } from './link.ts';
export type { SessionObserver } from './observer.ts';
export type {
  BmcReadReceiver,
  ConsoleReceiver,
  DiscoveryReceiver,
  PrefetchReceiver,
  TrustKeeper,
} from './receivers.ts';
export { whyWithheld } from './results.ts';
export { AgentSession, type SessionOptions } from './session.ts';
export type { SessionTransport, StreamConnection, TransportHandlers } from './transport.ts';
