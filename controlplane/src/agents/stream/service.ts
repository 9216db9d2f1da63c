/** The gRPC side of agent sessions: one bidirectional stream per rack. */
import {
  ApiFailure,
  type agent,
  type CallContext,
  type RackId,
  unavailable,
} from '@rackwright/messages';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { AgentLimits } from '../base/limits.ts';
import { Outbox } from '../base/outbox.ts';
import type { RackSlots } from '../base/rack-slots.ts';
import { RackSession } from './rack-session.ts';
import { type SharedBySessions, sharedBySessions } from './shared.ts';

export interface AgentServiceDependencies extends SessionDependencies {
  /** The rack of the calling agent. Throws `ApiFailure` when there is none. */
  readonly identify: (context: CallContext) => Promise<RackId>;
  readonly limits?: AgentLimits;
}

/** Changes of many hosts at the same time make one snapshot, and one list of hosts to poll. */
const snapshotDelayMs = 100;
const powerSyncDelayMs = 2_000;
/** An agent has this long to read why its session has ended; then the stream is cut. */
const lastWordsMs = 5_000;

/** The lengths of the queues, of all racks. */
export interface SessionQueues {
  /** For messages of agents. */
  readonly reportSlots: Pick<RackSlots, 'waiting' | 'underWay'>;
  readonly hellos: Pick<RackSlots, 'waiting' | 'underWay'>;
}

export interface AgentService {
  /** The queues of all racks. */
  readonly queues: SessionQueues;
  session(
    requests: AsyncIterable<agent.SessionRequest>,
    context: CallContext,
  ): AsyncIterable<{ message: agent.SessionResponse['message'] }>;
}

/** Handlers of `AgentService`, to be bound to the agents' port. */
export function createAgentService(deps: AgentServiceDependencies): AgentService {
  const shared = sharedBySessions(deps);
  const sessions = new Set<RackSession>();
  const soon = (delayMs: number, act: (session: RackSession) => Promise<void>) => {
    const changed = new Set<RackId>();
    return (rackId: RackId) => {
      if (changed.has(rackId)) return;
      changed.add(rackId);
      deps.clock.after(delayMs, () => {
        changed.delete(rackId);
        for (const session of sessions) if (session.rackId === rackId) void act(session);
      });
    };
  };
  deps.hosts.onBootChange(soon(snapshotDelayMs, (session) => session.sendSnapshot()));
  deps.trust?.onChange(() => {
    for (const session of sessions) session.sendTrust();
  });
  deps.hosts.index.onPowerTargetsChange(
    soon(powerSyncDelayMs, (session) => session.sendPowerSync()),
  );
  return {
    queues: shared,
    async *session(requests, context) {
      const rackId = await deps.identify(context);
      context.vouch?.();
      admit(rackId, sessions, shared);
      const outbox = new Outbox<agent.SessionResponse['message']>(
        shared.limits.outboxMessagesMax,
        () => {
          session.closed();
          // An agent that does not read the last message is not waited for.
          deps.clock.after(lastWordsMs, () => context.cut?.());
        },
      );
      const session = new RackSession(deps, shared, rackId, {
        send: (message) => outbox.push(message),
        end: () => outbox.end(),
      });
      sessions.add(session);
      const leave = deps.trust?.attend(context, rackId, (reason, message) => {
        session.dismiss(reason, message);
      });
      context.signal.addEventListener('abort', () => outbox.end(), { once: true });
      void receiveAll(deps, session, requests).finally(() => outbox.end());
      try {
        for await (const message of outbox) yield { message };
      } finally {
        leave?.();
        sessions.delete(session);
        session.closed();
      }
    },
  };
}

/** Throws when there is no room for another stream. */
function admit(
  rackId: RackId,
  sessions: ReadonlySet<RackSession>,
  { limits, hellos }: SharedBySessions,
): void {
  const { streamsPerRackMax, hellosWaitingMax, busyRetryAfterMs } = limits;
  if (hellos.waiting >= hellosWaitingMax) {
    const text = `${hellos.waiting} agents wait for their welcome; come again later.`;
    throw unavailable('TOO_MANY_AGENTS', text, busyRetryAfterMs);
  }
  let streams = 0;
  for (const session of sessions) if (session.rackId === rackId) streams += 1;
  if (streams < streamsPerRackMax) return;
  const text = `${streams} streams of racks/${rackId} are open already; come again later.`;
  throw unavailable('TOO_MANY_STREAMS', text, busyRetryAfterMs);
}

async function receiveAll(
  { log }: SessionDependencies,
  session: RackSession,
  requests: AsyncIterable<agent.SessionRequest>,
): Promise<void> {
  try {
    for await (const request of requests) {
      if (session.isOver) return;
      await session.receive(request);
    }
  } catch (error) {
    const cut = error instanceof ApiFailure && error.error.kind === 'cancelled';
    if (!cut) log.warn({ rack: session.rackId }, 'agent session broke off', error);
  }
}
