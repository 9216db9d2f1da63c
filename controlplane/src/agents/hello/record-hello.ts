/** What an agent's Hello changes in its rack's record, and what the session reads from it. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  asRevision,
  type HostUid,
  type RackId,
  type Revision,
} from '@rackwright/messages';
import { agentStepsOf, lifeOf } from '../../host/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import { believedBy } from '../base/trust.ts';
import { updateRack } from '../base/update-rack.ts';
import { rivalElsewhere } from './elsewhere.ts';
import type { SessionHint } from './hint.ts';
import { foldStoreGuard, isGuarded, lostSoFar } from './store-guard.ts';

/** The most steps of an agent that are kept. */
const agentStepsMax = 64;
const agentVersionCharsMax = 100;

/** What the rack's record said as the session began. */
export interface Recorded {
  /** Its registered key. */
  readonly key: Uint8Array;
  /** Hosts removed by force that the agent has not forgotten. */
  readonly tombstones: readonly HostUid[];
  /** The store has lost data, and the agent does not know yet that the loss was accepted. */
  readonly isGuarded: boolean;
  readonly lostRevisions: Revision;
}

/**
 * Writes the Hello down. Returns undefined when the rack does not exist. Returns a text when the
 * session of another replica takes precedence (R6); then the record stays as it is.
 */
export async function recordHello(
  deps: SessionDependencies,
  rackId: RackId,
  hello: agent.Hello,
  journal: agent.Journal,
  hint: SessionHint,
): Promise<Recorded | string | undefined> {
  const { store, hosts, clock, trust } = deps;
  const { incarnation } = store;
  const position = { incarnation, revision: asRevision(await store.latestRevision()) };
  const hostName = (uid: HostUid) => `hosts/${hosts.hostIdOfUid(uid, rackId) ?? uid}`;
  const believed = await believedBy(hello, trust);
  let outcome: Recorded | string | undefined;
  const exists = await updateRack(deps, rackId, (record, status) => {
    const elsewhere = rivalElsewhere(record, journal, deps);
    status.duplicateAgent = elsewhere ?? '';
    outcome = elsewhere;
    if (elsewhere !== undefined) return;
    foldStoreGuard(record, status, hello, position, clock.nowMs(), hostName);
    record.journal = lifeOf(journal);
    status.agentVersion = hello.agentVersion.slice(0, agentVersionCharsMax);
    record.agentSteps = agentStepsOf(hello).slice(0, agentStepsMax);
    status.lastSeenTime = timestampFromMs(clock.nowMs());
    record.trustedCaSha256 = believed;
    hint.put(record);
    outcome = {
      key: record.agentPublicKey,
      tombstones: [...record.tombstones],
      isGuarded: isGuarded(record),
      lostRevisions: lostSoFar(record),
    };
  });
  return exists ? outcome : undefined;
}
