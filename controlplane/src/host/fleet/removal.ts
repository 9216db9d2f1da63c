/**
 * Cleanup after the removal of a host's record. A crash in between leaves only stale reservations.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type HostId, RunPhase, store as wire } from '@rackwright/messages';
import type { CrashPoint, Log } from '@rackwright/platform';
import { keySegment, type StoreRevision, storeKey } from '@rackwright/store';
import {
  deleteRecord,
  orUnavailable,
  type RecordWriteResult,
  type RecordWriter,
  writeRecord,
} from '../../records/index.ts';
import { identityHex } from '../erasure/identity.ts';
import type { HostEvent } from '../pass/types.ts';
import { releaseDisks } from './known-disks.ts';
import { releaseReservations, releaseReserved } from './reservations.ts';

/**
 * Deletes the record. Before that, the person's request is written into it, so that a repeated
 * request gets the same response although the host is gone.
 */
export async function removeRecord(
  writer: RecordWriter,
  key: string,
  record: wire.HostRecord,
  revision: StoreRevision,
  event: HostEvent,
): Promise<RecordWriteResult> {
  let last = revision;
  if (event.kind === 'request') {
    const written = await writeRecord(writer, wire.HostRecordSchema, key, record, revision);
    if (written.kind === 'conflict') return written;
    last = written.revision;
  }
  return deleteRecord(writer, key, last);
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
