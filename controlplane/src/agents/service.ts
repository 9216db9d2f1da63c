/** The gRPC side of agent sessions: one bidirectional stream per rack. */
import { ApiFailure, type agent, type CallContext } from '@rackwright/api';
import { Outbox } from './outbox.ts';
import { RackSession, type SessionDependencies } from './rack-session.ts';

export interface AgentServiceDependencies extends SessionDependencies {
  /** The rack of the agent that calls. Throws `ApiFailure` when it is nobody's. */
  readonly identify: (context: CallContext) => Promise<string>;
}

/** Messages that may wait for a slow agent; a session beyond that is ended. */
const outboxMessagesMax = 10_000;

/** Changes of many hosts that come together make one snapshot, and one list of hosts to look at. */
const snapshotDelayMs = 100;
const powerSyncDelayMs = 2_000;

export interface AgentService {
  session(
    requests: AsyncIterable<agent.SessionRequest>,
    context: CallContext,
  ): AsyncIterable<{ message: agent.SessionResponse['message'] }>;
}

/** Handlers of `AgentService`, to be bound to the agents' port. */
export function createAgentService(deps: AgentServiceDependencies): AgentService {
  const sessions = new Set<RackSession>();
  const soon = (delayMs: number, act: (session: RackSession) => Promise<void>) => {
    const changed = new Set<string>();
    return (rackId: string) => {
      if (changed.has(rackId)) return;
      changed.add(rackId);
      deps.clock.after(delayMs, () => {
        changed.delete(rackId);
        for (const session of sessions) if (session.rackId === rackId) void act(session);
      });
    };
  };
  deps.hosts.onBootChange(soon(snapshotDelayMs, (session) => session.sendSnapshot()));
  deps.hosts.index.onLooksChange(soon(powerSyncDelayMs, (session) => session.sendPowerSync()));
  return {
    async *session(requests, context) {
      const rackId = await deps.identify(context);
      const outbox = new Outbox<agent.SessionResponse['message']>(outboxMessagesMax);
      const session = new RackSession(deps, rackId, {
        send: (message) => outbox.push(message),
        end: () => outbox.end(),
      });
      sessions.add(session);
      context.signal.addEventListener('abort', () => outbox.end(), { once: true });
      void receiveAll(deps, session, requests).finally(() => outbox.end());
      try {
        for await (const message of outbox) yield { message };
      } finally {
        sessions.delete(session);
        session.closed();
      }
    },
  };
}

async function receiveAll(
  { log }: SessionDependencies,
  session: RackSession,
  requests: AsyncIterable<agent.SessionRequest>,
): Promise<void> {
  try {
    for await (const request of requests) await session.receive(request);
  } catch (error) {
    const cut = error instanceof ApiFailure && error.error.kind === 'cancelled';
    if (!cut) log.warn({ rack: session.rackId, error: String(error) }, 'agent session broke off');
  }
}
