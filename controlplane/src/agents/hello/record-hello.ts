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
import { trustedBy } from '../base/trust.ts';
import { updateRack } from '../base/update-rack.ts';
import { type Rival, rivalElsewhere } from './elsewhere.ts';
import type { SessionHint } from './hint.ts';
import { foldStoreGuard, isGuarded, lostSoFar } from './store-guard.ts';

/** The most steps of an agent that are kept. */
const agentStepsMax = 64;
const agentVersionCharsMax = 100;

/** What the rack's record said as the session began. */
export interface RecordedRack {
  /** Its registered key. */
  readonly key: Uint8Array;
  /** Hosts removed by force that the agent has not forgotten. */
  readonly tombstones: readonly HostUid[];
  /** The store has lost data, and the agent does not know yet that the loss was accepted. */
  readonly isGuarded: boolean;
  readonly lostRevisions: Revision;
}

/** What follows from a Hello. */
export type HelloOutcome =
  | { readonly kind: 'welcome'; readonly recorded: RecordedRack }
  /** The session of another replica takes precedence (R6). */
  | Rival
  /** The rack does not exist. */
  | { readonly kind: 'noRack' };

const noRack: HelloOutcome = { kind: 'noRack' };

/** Writes the Hello down. For a rival the record only shows that a duplicate agent came. */
export async function recordHello(
  deps: SessionDependencies,
  rackId: RackId,
  hello: agent.Hello,
  journal: agent.Journal,
  hint: SessionHint,
): Promise<HelloOutcome> {
  const { store, hosts, clock, trust } = deps;
  const { incarnation } = store;
  // An old answer would look like a store that has lost what the agent has seen.
  const position = { incarnation, revision: asRevision(await store.presentRevision()) };
  const hostName = (uid: HostUid) => `hosts/${hosts.hostIdOfUid(uid, rackId) ?? uid}`;
  const trusted = await trustedBy(hello, trust);
  let outcome = noRack;
  const exists = await updateRack(deps, rackId, (record, status) => {
    const rival = rivalElsewhere(record, journal, deps);
    status.duplicateAgent = rival?.text ?? '';
    if (rival !== undefined) {
      outcome = rival;
      return;
    }
    foldStoreGuard(record, status, hello, position, clock.nowMs(), hostName);
    record.journal = lifeOf(journal);
    status.agentVersion = hello.agentVersion.slice(0, agentVersionCharsMax);
    record.agentSteps = agentStepsOf(hello).slice(0, agentStepsMax);
    status.lastSeenTime = timestampFromMs(clock.nowMs());
    record.trustedCaSha256 = trusted;
    hint.put(record);
    const recorded = {
      key: record.agentPublicKey,
      tombstones: [...record.tombstones],
      isGuarded: isGuarded(record),
      lostRevisions: lostSoFar(record),
    };
    outcome = { kind: 'welcome', recorded };
  });
  return exists ? outcome : noRack;
}
