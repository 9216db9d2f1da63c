/** What a renewal of the work lease depends on, and what it contains (R11). */
import { create } from '@bufbuild/protobuf';
import { agent, asRevision, type RackId, store as wire } from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { destructionBrake, fleetKey, type LeaseBrakeKind } from '../../host/index.ts';
import { type KeptRecord, readShared } from '../../records/index.ts';
import type { SessionTiming } from '../base/timing.ts';
import { lostSoFar } from './store-guard.ts';

/** Longest text of a brake in a renewal, in characters. */
const frozenCharsMax = 500;

/** The records at one heartbeat. */
export interface AsOfHeartbeat {
  readonly rack: KeptRecord<wire.RackRecord> | undefined;
  readonly fleet: KeptRecord<wire.FleetRecord> | undefined;
  readonly revision: number;
}

const brakeKinds: Readonly<Record<LeaseBrakeKind, agent.BrakeKind>> = {
  freeze: agent.BrakeKind.FREEZE,
  restoredStore: agent.BrakeKind.RESTORED_STORE,
  restoredStoreAccepted: agent.BrakeKind.RESTORED_STORE_ACCEPTED,
};

/** Read again for each renewal, so that it includes every earlier freeze (R11). */
export async function readForRenewal(store: StateStore, rackId: RackId): Promise<AsOfHeartbeat> {
  const [rack, fleet, revision] = await Promise.all([
    readShared(store, wire.RackRecordSchema, storeKey('racks', rackId)),
    readShared(store, wire.FleetRecordSchema, fleetKey),
    store.latestRevision(),
  ]);
  return { rack, fleet, revision };
}

/** How much longer than usual the agent is silent now, as it reports and as it is permitted. */
export function quietMs(
  { nextInMs }: agent.Heartbeat,
  { heartbeatIntervalMs, idleHeartbeatIntervalMs }: SessionTiming,
): number {
  return Math.max(Math.min(nextInMs, idleHeartbeatIntervalMs) - heartbeatIntervalMs, 0);
}

/**
 * The renewal. It also says that a restored store was accepted, as long as the agent needs that.
 */
export function renewalOf(
  { sequence }: agent.Heartbeat,
  { rack, fleet, revision }: AsOfHeartbeat,
  { leaseDurationMs }: SessionTiming,
): agent.SessionResponse['message'][] {
  const brake = destructionBrake(rack?.record, fleet?.record);
  const value = create(agent.LeaseRenewalSchema, {
    heartbeatSequence: sequence,
    durationMs: leaseDurationMs,
    revision: asRevision(revision),
    // An agent that does not know the kind withholds the work by the text.
    frozen: brake?.text.slice(0, frozenCharsMax) ?? '',
    brake: brake === undefined ? agent.BrakeKind.UNSPECIFIED : brakeKinds[brake.kind],
  });
  const renewal = { case: 'leaseRenewal', value } as const;
  const { acceptedStore } = rack?.record ?? {};
  if (rack === undefined || acceptedStore === undefined) return [renewal];
  const accepted = { ...acceptedStore, lostRevisions: lostSoFar(rack.record) };
  return [renewal, { case: 'storeAccepted', value: accepted }];
}
