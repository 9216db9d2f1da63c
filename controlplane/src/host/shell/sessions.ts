/**
 * Which rack's agent is connected to this replica, and how to reach it. The host loop reads it and
 * knows nothing else of sessions, which are a layer above hosts and write into it.
 */
import type { AgentSessionId, agent, BmcReadKind, OperationId, RackId } from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';

/** A session that has been welcomed and not ended. */
export interface LiveSession {
  readonly rackId: RackId;
  /** As in its Welcome: only its own agent knows it. */
  readonly sessionId: AgentSessionId;
  readonly journal: agent.Journal;
  /** The operation kinds in its Hello. */
  readonly operationKinds: readonly string[];
  /** The BMC data that its agent can read on request, from its Hello. */
  readonly bmcReads: readonly BmcReadKind[];
  /** Whether its agent supports consoles. */
  readonly watchesConsoles: boolean;
  /** When its last message came, wall time. */
  lastMessageMs(): number;
  /** When its Hello came, wall time. */
  readonly openedMs: number;
  /** Whether Hello announced a final report of this operation that has not come yet. */
  awaitsReport(operationId: OperationId): boolean;
  /** Never throws: a message that cannot be sent now is sent again after the next Hello. */
  send(message: agent.SessionResponse['message']): void;
  /** Another session has replaced it: its messages no longer count. */
  end(): void;
}

export interface SessionRegistry {
  sessionOf(rackId: RackId): LiveSession | undefined;
  /** Replaces any earlier session. */
  open(session: LiveSession): void;
  /** Removes exactly this session, never a newer one (rule R6). */
  close(session: LiveSession): void;
  /** Calls `observer` with the rack whenever its session opens or closes, until it is cancelled. */
  onChange(observer: (rackId: RackId) => void): Cancel;
}

export function createSessionRegistry(): SessionRegistry {
  const sessions = new Map<RackId, LiveSession>();
  const observers = new Set<(rackId: RackId) => void>();
  const changed = (rackId: RackId) => {
    for (const observer of observers) observer(rackId);
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
    onChange: (observer) => {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
}
