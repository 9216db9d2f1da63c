/**
 * Fences around the remains of a forced removal (DESIGN §7). Until the agent has confirmed that it
 * forgot the host, a new host with one of its addresses is accepted but held.
 *
 * Invariants:
 * 1. The record of the remains is written before the host's own is deleted. An enrolment reads it
 *    after it has reserved the addresses: at least one of the two sees the other. A host that takes
 *    an address later reads it before that too, and its record names the fences first.
 * 2. A fence is lifted only by the agent's confirmation, or by a person who confirms that the
 *    machine is disconnected.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type AbandonedResource,
  type HostSpec,
  type HostUid,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import type { FleetView } from '../../fleet-view/index.ts';
import {
  changeRecord,
  orUnavailable,
  type ReadableStore,
  type RecordWriter,
  readRecord,
} from '../../records/index.ts';
import { mayBeSameBmc } from '../bmc/endpoint.ts';

const collection = 'abandonedResources';

/** Uids of forcibly removed hosts whose agent may still act on a host with this spec. */
export async function fencesAround(store: StateStore, spec: HostSpec): Promise<string[]> {
  const { entries } = await orUnavailable(store.list(collection));
  return entries
    .map(({ value }) => fromBinary(wire.AbandonedRecordSchema, value))
    .filter((record) => fencesOff(record, spec))
    .map(({ resource }) => resource?.hostUid ?? '');
}

function fencesOff({ resource, bmc }: wire.AbandonedRecord, spec: HostSpec): boolean {
  if (resource?.fencePending !== true) return false;
  const sameMac = resource.bootMacs.some((mac) => spec.bootMacs.includes(mac));
  const sameBmc = bmc !== undefined && spec.bmc !== undefined && mayBeSameBmc(bmc, spec.bmc);
  return sameMac || sameBmc;
}

/** The given fences that still exist. */
export async function fencesPending(
  store: ReadableStore,
  { fences }: wire.HostRecord,
): Promise<ReadonlySet<HostUid>> {
  const pending = new Set<HostUid>();
  for (const uid of fences) {
    const kept = await readRecord(store, wire.AbandonedRecordSchema, storeKey(collection, uid));
    if (kept?.record.resource?.fencePending === true) pending.add(uid);
  }
  return pending;
}

/**
 * Changes the record of an abandoned resource, if `change` changes anything. Undefined when there
 * is none. Throws `aborted` and `unavailable`.
 */
export async function changeAbandoned(
  writer: RecordWriter,
  uid: HostUid,
  change: (resource: AbandonedResource) => boolean,
): Promise<{ resource: AbandonedResource; revision: StoreRevision } | undefined> {
  const key = storeKey(collection, uid);
  const changed = await changeRecord(writer, wire.AbandonedRecordSchema, key, (record) => {
    const { resource } = record;
    return resource !== undefined && change(resource) ? record : undefined;
  });
  const { resource } = changed?.record ?? {};
  return changed && resource && { resource, revision: changed.revision };
}

/** Ids of the hosts that `uid` fences off, to reconcile them. */
export async function hostsFencedBy(
  fleetView: Pick<FleetView, 'caughtUp' | 'idsBy'>,
  uid: HostUid,
): Promise<readonly string[]> {
  await fleetView.caughtUp();
  return [...fleetView.idsBy('fence', uid)];
}
