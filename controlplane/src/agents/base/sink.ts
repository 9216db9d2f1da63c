/** The way out of a session: its stream, or whatever stands for one in tests. */
import type { agent } from '@rackwright/messages';

export interface SessionSink {
  readonly send: (message: agent.SessionResponse['message']) => void;
  /** Ends the stream after what was sent, or soon without it. */
  readonly end: () => void;
}
