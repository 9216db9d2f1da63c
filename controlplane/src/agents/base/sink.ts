/** The way out of a session: its stream, or a substitute in tests. */
import type { agent } from '@rackwright/messages';

export interface SessionSink {
  readonly send: (message: agent.SessionResponse['message']) => void;
  /** Ends the stream after the pending messages, or shortly without them. */
  readonly end: () => void;
}
