/**
 * Cleanup after the removal of a host's record. A crash in between leaves only stale reservations.
 */
import { clone, fromBinary } from '@bufbuild/protobuf';
import { type HostId, RunPhase, store as wire } from '@rackwright/messages';
import type { CrashPoint, Log } from '@rackwright/platform';
import { keySegment, type StoreRevision, storeKey } from '@rackwright/store';
import {
  deleteRecord,
  orUnavailable,
  type RecordWriter,
  writeRecord,
} from '../../records/index.ts';
import { identityHex } from '../erasure/identity.ts';
import type { HostEvent } from '../pass/types.ts';
import { releaseDisks } from './known-disks.ts';
import { releaseReservations, releaseReserved } from './reservations.ts';

/** A host's record as a pass found it. */
interface FoundHost {
  readonly key: string;
  readonly record: wire.HostRecord;
  readonly revision: StoreRevision;
}

/**
 * Writes the intent of a removal into the record that a request removes at once; otherwise it was
 * written before. Nothing else of the removal is written earlier: a crash, or a lost write, would
 * leave a host that stays, whose agent is told to forget it. The record keeps the request, too: a
 * repeated one gets the same response although the host is gone. `removed`: the record after the
 * removal.
 */
export async function writeIntent(
  writer: RecordWriter & { readonly crashPoint: CrashPoint },
  { key, record, revision }: FoundHost,
  removed: wire.HostRecord,
  event: HostEvent,
): Promise<{ readonly kind: 'ok'; readonly revision: StoreRevision } | { kind: 'conflict' }> {
  if (event.kind !== 'request') return { kind: 'ok', revision };
  const intended = clone(wire.HostRecordSchema, record);
  const deletion = removed.host?.status?.deletion;
  if (intended.host?.status !== undefined && deletion !== undefined) {
    intended.host.status.deletion = deletion;
  }
  intended.requestIds = removed.requestIds;
  if (removed.change !== undefined) intended.change = removed.change;
  const written = await writeRecord(writer, wire.HostRecordSchema, key, intended, revision);
  if (written.kind === 'ok') writer.crashPoint('cp.removalIntended');
  return written;
}

/** After the deletion of the record: releases everything that the host held. */
export async function releaseEverything(
  writer: RecordWriter & { readonly crashPoint: CrashPoint; readonly log: Log },
  hostId: HostId,
  record: wire.HostRecord,
): Promise<void> {
  writer.crashPoint('cp.hostRemoved');
  const { deletion } = record.host?.status ?? {};
  const fields = { host: record.host?.name, uid: record.host?.uid, actor: deletion?.by };
  writer.log.info({ ...fields, reason: deletion?.reason }, 'the host has been removed');
  await releaseReservations(writer, record);
  const guid = record.host?.status?.bmcIdentity?.guid;
  if (record.host !== undefined && guid !== undefined && guid.length > 0) {
    await releaseReserved(writer, record.host, [identityReservation(guid)]);
  }
  const key = storeKey('facts', hostId);
  const facts = await orUnavailable(writer.store.get(key));
  if (facts.kind !== 'found') return;
  const { inventory, hostUid } = fromBinary(wire.HostFactsSchema, facts.value);
  if (record.host?.uid === hostUid) await releaseDisks(writer, record.host, inventory);
  await deleteRecord(writer, key, facts.revision);
}

/** The key that reserves a BMC's identity for one host. */
export function identityReservation(guid: Uint8Array) {
  const value = identityHex(guid);
  return {
    key: storeKey('reservations', 'guid', keySegment(value)),
    value,
    field: 'status.bmc_identity.guid',
    // It is reserved while a run of the host is about to prove it.
    belongsTo: ({ host }: wire.HostRecord) => {
      const { run, bmcIdentity } = host?.status ?? {};
      const proves = run !== undefined && run.phase !== RunPhase.ENDED;
      return proves || identityHex(bmcIdentity?.guid ?? new Uint8Array()) === value;
    },
  };
}
