/** What a renewal of the work lease rests on, and what it says (R11). */
import { create } from '@bufbuild/protobuf';
import { agent, asRevision, type RackId, store as wire } from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { fleetKey, whyNothingDestructive } from '../../host/index.ts';
import { type Kept, readShared } from '../../records/index.ts';
import type { SessionTiming } from '../base/timing.ts';
import { lostSoFar } from './store-guard.ts';

/** Longest reason of a freeze that goes out with each renewal, in characters. */
const frozenCharsMax = 500;

/** The store as of one heartbeat. */
export interface AsOfHeartbeat {
  readonly rack: Kept<wire.RackRecord> | undefined;
  readonly fleet: Kept<wire.FleetRecord> | undefined;
  readonly revision: number;
}

/** Read anew for each renewal: a freeze that was written before it is in it (R11). */
export async function readForRenewal(store: StateStore, rackId: RackId): Promise<AsOfHeartbeat> {
  const [rack, fleet, revision] = await Promise.all([
    readShared(store, wire.RackRecordSchema, storeKey('racks', rackId)),
    readShared(store, wire.FleetRecordSchema, fleetKey),
    store.latestRevision(),
  ]);
  return { rack, fleet, revision };
}

/** How much longer than usual the agent is silent now, by what it says and as it was allowed to. */
export function quietMs(
  { nextInMs }: agent.Heartbeat,
  { heartbeatIntervalMs, idleHeartbeatIntervalMs }: SessionTiming,
): number {
  return Math.max(Math.min(nextInMs, idleHeartbeatIntervalMs) - heartbeatIntervalMs, 0);
}

/** The renewal, and that a restored store was accepted for as long as the agent must know. */
export function renewalOf(
  { sequence }: agent.Heartbeat,
  { rack, fleet, revision }: AsOfHeartbeat,
  { leaseDurationMs }: SessionTiming,
): agent.SessionResponse['message'][] {
  const value = create(agent.LeaseRenewalSchema, {
    heartbeatSequence: sequence,
    durationMs: leaseDurationMs,
    revision: asRevision(revision),
    frozen: whyNothingDestructive(rack?.record, fleet?.record).slice(0, frozenCharsMax),
  });
  const renewal = { case: 'leaseRenewal', value } as const;
  const { acceptedStore } = rack?.record ?? {};
  if (rack === undefined || acceptedStore === undefined) return [renewal];
  const accepted = { ...acceptedStore, lostRevisions: lostSoFar(rack.record) };
  return [renewal, { case: 'storeAccepted', value: accepted }];
}
