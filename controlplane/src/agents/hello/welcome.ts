/** The directives of a Welcome for the work that the Hello lists (R10). */
import { create } from '@bufbuild/protobuf';
import {
  type AgentSessionId,
  agent,
  asRevision,
  type HostId,
  type HostUid,
  type OperationId,
  type RackId,
  type Revision,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import type { Hosts } from '../../host/index.ts';
import { readRecord } from '../../records/index.ts';
import type { SessionTiming } from '../base/timing.ts';
import { directiveFor, obstructsRemoval } from './directives.ts';
import { guardedDirectives } from './store-guard.ts';

export interface WelcomeDependencies {
  readonly store: StateStore;
  readonly hosts: Pick<Hosts, 'hostIdOfUid'>;
  readonly timing: SessionTiming;
}

/** What the session knows at that time. */
export interface WelcomeFacts {
  readonly rackId: RackId;
  readonly sessionId: AgentSessionId;
  readonly journal: agent.Journal;
  /** The store has lost data, and the agent does not know yet that the loss was accepted. */
  readonly isGuarded: boolean;
  readonly lostRevisions: Revision;
  readonly forgetHostUids: HostUid[];
  /** The stream has ended: nothing more is read. */
  readonly isOver: () => boolean;
}

/** The Welcome to a Hello; undefined when the session ended meanwhile. */
export async function welcomeTo(
  { store, hosts, timing }: WelcomeDependencies,
  hello: agent.Hello,
  facts: WelcomeFacts,
): Promise<agent.Welcome | undefined> {
  const { rackId, journal, isGuarded, isOver } = facts;
  const directives = isGuarded ? guardedDirectives(hello.operations) : [];
  // Each host is read once, even if it is named several times.
  const records = new Map<HostUid, wire.HostRecord | undefined>();
  for (const operation of hello.operations) {
    const { hostUid } = operation;
    if (!records.has(hostUid)) {
      if (isOver()) return undefined;
      records.set(hostUid, await recordOf(store, hosts.hostIdOfUid(hostUid, rackId)));
    }
    const record = records.get(hostUid);
    if (isGuarded && !obstructsRemoval(operation, record)) continue;
    directives.push(directiveFor(operation, record, journal));
  }
  return create(agent.WelcomeSchema, {
    sessionId: facts.sessionId,
    incarnation: store.incarnation,
    // The agent refuses a store that has less than it has seen.
    revision: asRevision(await store.presentRevision()),
    heartbeatIntervalMs: timing.heartbeatIntervalMs,
    idleHeartbeatIntervalMs: timing.idleHeartbeatIntervalMs,
    directives,
    forgetHostUids: facts.forgetHostUids,
    lostRevisions: facts.lostRevisions,
  });
}

/** Whether the operation is the present one of the host. */
export async function isPresent(
  store: StateStore,
  hostId: HostId,
  operationId: OperationId,
): Promise<boolean> {
  const record = await recordOf(store, hostId);
  return record?.operation?.operation?.id === operationId;
}

async function recordOf(
  store: StateStore,
  hostId: HostId | undefined,
): Promise<wire.HostRecord | undefined> {
  if (hostId === undefined) return undefined;
  return (await readRecord(store, wire.HostRecordSchema, storeKey('hosts', hostId)))?.record;
}
