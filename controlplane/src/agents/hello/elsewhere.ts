/**
 * R6 between replicas: the rack's record says which session is valid, and on which replica. Pure.
 *
 * 1. A Hello is refused while another replica has a valid session that the agent must not replace:
 *    one of another journal, or of a later life of the same journal.
 * 2. A session that the record no longer names gets no lease: the agent has said Hello to another
 *    replica, or another agent has.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { agent, ReplicaId, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { isDescendantOf, isSameLife, type LiveSession } from '../../host/index.ts';
import type { SessionTiming } from '../base/timing.ts';

/** How often a session renews its hint in the rack's record. */
export const hintIntervalMs = 60_000;

/** Another agent of the rack, whose session goes on. */
export interface Rival {
  readonly kind: 'rival';
  /** For people. */
  readonly text: string;
}

/** The replica that asks. */
export interface AskingReplica {
  readonly replicaId: ReplicaId;
  readonly clock: Clock;
  readonly timing: Pick<SessionTiming, 'idleHeartbeatIntervalMs' | 'leaseDurationMs'>;
}

/**
 * A session that has been silent longer than this has ended: without work it sends fewer
 * heartbeats.
 */
function silenceMs({ idleHeartbeatIntervalMs, leaseDurationMs }: AskingReplica['timing']): number {
  return idleHeartbeatIntervalMs + leaseDurationMs;
}

/** The rival whose session on another replica this agent must not replace, or undefined (1). */
export function rivalElsewhere(
  { journal: recorded, sessionReplica, sessionTime }: wire.RackRecord,
  journal: agent.Journal,
  { replicaId, clock, timing }: AskingReplica,
): Rival | undefined {
  if (recorded === undefined || sessionTime === undefined) return undefined;
  if (sessionReplica === '' || sessionReplica === replicaId) return undefined;
  // A hint that was not renewed for this long belongs to a replica that has stopped.
  const validUntilMs = timestampMs(sessionTime) + hintIntervalMs + silenceMs(timing);
  if (validUntilMs <= clock.nowMs()) return undefined;
  if (isDescendantOf(journal, recorded)) return undefined;
  return {
    kind: 'rival',
    text:
      `another agent of the rack is connected to replica ${sessionReplica} (journal ` +
      `${recorded.id}, generation ${recorded.generation}); stop one of the two`,
  };
}

/**
 * The rival whose valid session on this replica this agent must not replace, or undefined (R6). An
 * agent that opens its next session before it leaves this one names that session.
 */
export function rivalHere(
  current: LiveSession,
  { journal, replacesSessionId }: agent.Hello,
  { clock, timing }: Pick<AskingReplica, 'clock' | 'timing'>,
): Rival | undefined {
  if (current.lastMessageMs() + silenceMs(timing) <= clock.nowMs()) return undefined;
  if (journal !== undefined && isDescendantOf(journal, current.journal)) {
    if (!isSameLife(journal, current.journal)) return undefined;
    if (replacesSessionId === current.sessionId) return undefined;
  }
  return {
    kind: 'rival',
    text:
      `another agent of rack ${current.rackId} is connected (journal ${current.journal.id}, ` +
      `generation ${current.journal.generation}); stop one of the two`,
  };
}

/** The session's own knowledge; without a journal it is already replaced here. */
export interface OwnSession {
  readonly journal: agent.Journal | undefined;
  /** The rack's registered key when the session began. */
  readonly key: Uint8Array;
  readonly replicaId: ReplicaId;
}

/** Whether the rack's record still names a session. */
export type SessionValidity =
  | { readonly kind: 'valid' }
  /** `text` says why, for people. */
  | { readonly kind: 'over'; readonly text: string };

/** Whether the session still gets a lease (2). */
export function validityOf(
  rack: wire.RackRecord | undefined,
  { journal, key, replicaId }: OwnSession,
): SessionValidity {
  if (rack === undefined) return over('the rack is gone');
  if (journal === undefined) return over('a newer session has taken its place');
  const isOwnKey = Buffer.from(rack.agentPublicKey).equals(key);
  if (!isOwnKey) return over('the key of the rack is another one');
  const { journal: recorded, sessionReplica } = rack;
  const elsewhere = sessionReplica !== '' && sessionReplica !== replicaId;
  if (elsewhere) return over(`replica ${sessionReplica} has a newer session`);
  const own = recorded !== undefined && isSameLife(journal, recorded);
  return own ? { kind: 'valid' } : over('another agent has said Hello');
}

function over(text: string): SessionValidity {
  return { kind: 'over', text };
}
