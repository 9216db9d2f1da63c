/** The agent's side of the protocol (DESIGN §3). */
export {
  AttemptEnd,
  type BootGrant,
  type Credential,
  type ExecutedKind,
  type Executor,
  type OperationContext,
  type Progress,
} from './executor.ts';
export type { Connection, Transport, TransportHandlers } from './transport.ts';
