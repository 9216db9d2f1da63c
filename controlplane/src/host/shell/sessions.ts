/**
 * Which rack's agent is connected here, and how to reach it. The host loop reads from it and knows
 * nothing else of sessions, which stand above hosts and write into it.
 */
import type { agent, BmcReadKind, OperationId, RackId } from '@rackwright/messages';

/** A session that has been welcomed and not ended. */
export interface LiveSession {
  readonly rackId: RackId;
  /** As in its Welcome: only its own agent knows it. */
  readonly sessionId: string;
  readonly journal: agent.Journal;
  /** What its Hello named. */
  readonly operationKinds: readonly string[];
  /** What of BMCs its agent can read when asked, as its Hello named it. */
  readonly bmcReads: readonly BmcReadKind[];
  /** Whether its agent shows consoles. */
  readonly watchesConsoles: boolean;
  /** When its last message came, wall time. */
  lastMessageMs(): number;
  /** When its Hello came, wall time. */
  readonly openedMs: number;
  /** Whether Hello announced a final report of this operation that has not come yet. */
  awaitsReport(operationId: OperationId): boolean;
  /** Never throws: what cannot be sent now is sent again after the next Hello. */
  send(message: agent.SessionResponse['message']): void;
  /** Another session has taken its place: nothing it says counts any more. */
  end(): void;
}

export interface SessionRegistry {
  sessionOf(rackId: RackId): LiveSession | undefined;
  /** Replaces what stood there. */
  open(session: LiveSession): void;
  /** Removes exactly this session, never a newer one (rule R6). */
  close(session: LiveSession): void;
  /** Calls `listener` with the rack whenever its session opens or closes. */
  onChange(listener: (rackId: RackId) => void): void;
}

export function createSessionRegistry(): SessionRegistry {
  const sessions = new Map<string, LiveSession>();
  const listeners: ((rackId: RackId) => void)[] = [];
  const changed = (rackId: RackId) => {
    for (const listener of listeners) listener(rackId);
  };
  return {
    sessionOf: (rackId) => sessions.get(rackId),
    open: (session) => {
      const replaced = sessions.get(session.rackId);
      sessions.set(session.rackId, session);
      replaced?.end();
      changed(session.rackId);
    },
    close: (session) => {
      if (sessions.get(session.rackId) !== session) return;
      sessions.delete(session.rackId);
      changed(session.rackId);
    },
    onChange: (listener) => {
      listeners.push(listener);
    },
  };
}
