/** The stream to the control plane as the session sees it: gRPC in production, messages in memory
 * in the simulation. */
import type { agent } from '@rackwright/messages';

export interface TransportHandlers {
  onMessage(message: agent.SessionResponse): void;
  /** The stream is over, or could not be opened. At most once; no event follows it. */
  onClosed(reason: string): void;
}

export interface StreamConnection {
  /** Queues a message; messages arrive in this order or the stream ends. Never throws. */
  send(message: agent.SessionRequest): void;
  /** Ends the stream. Idempotent; handlers may or may not be called afterwards. */
  close(): void;
}

export interface SessionTransport {
  /** Opens one stream. Returns at once; never calls a handler before it has returned. */
  connect(handlers: TransportHandlers): StreamConnection;
}
