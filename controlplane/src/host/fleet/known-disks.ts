/**
 * The host to which a disk is attached, by agents' reports: for each reliable name of a disk one
 * key names the host that was first known to have it. A lookup uses the name, never a scan.
 *
 * Invariants:
 * K1 A name belongs to its holder while the holder's facts list the disk, or a run of the holder is
 *    about to report. When a disk is moved, the old holder's next inspection shows that.
 * K2 If two hosts report the same disk, the first one keeps it, and the second learns of the first.
 * K3 Work and reads grow with the disks of one host, never with the number of hosts.
 */
import { create } from '@bufbuild/protobuf';
import { type DiskName, deviceIdentity, diskNames } from '@rackwright/erasure';
import {
  type HostName,
  type Inventory,
  RunPhase,
  type StorageDevice,
  store as wire,
} from '@rackwright/messages';
import { keySegment, storeKey } from '@rackwright/store';
import {
  deleteRecord,
  idOf,
  orUnavailable,
  type ReadableStore,
  type RecordWriter,
  readShared,
  sharedRecordOf,
  writeShared,
} from '../../records/index.ts';
import { decideToWrite } from '../erasure/device-plan.ts';
import type { HostEvent } from '../pass/types.ts';
import type { ReservationHolder } from './reservations.ts';

/** The most disks of one host that are looked up. */
const disksMax = 1_024;

/** By the identity of a disk in results: the other host that is known to have it. */
export type DisksElsewhere = ReadonlyMap<string, HostName>;

const none: DisksElsewhere = new Map();

/**
 * Called before an inventory is judged: its disks are registered for this host, or the host that
 * has them is found. Throws `unavailable`.
 */
export async function noteDisks(
  writer: RecordWriter,
  { host, operation }: wire.HostRecord,
  event: HostEvent,
): Promise<DisksElsewhere> {
  if (event.kind !== 'report' || host === undefined) return none;
  const { result, operationId } = event.report;
  if (operationId !== operation?.operation?.id || result.case !== 'complete') return none;
  const { inventory } = result.value.observations ?? {};
  if (inventory === undefined) return none;
  const elsewhere = new Map<string, HostName>();
  for (const { device, name } of namesIn(inventory).slice(0, disksMax)) {
    const other = await hold(writer, host, name);
    if (other !== undefined) elsewhere.set(device, other);
  }
  return elsewhere;
}

/** After or with the deletion of the record: releases the disks of the last inventory. */
export async function releaseDisks(
  writer: RecordWriter,
  holder: ReservationHolder,
  inventory: Inventory | undefined,
): Promise<void> {
  if (inventory === undefined) return;
  for (const { name } of namesIn(inventory).slice(0, disksMax)) {
    const key = keyOf(name);
    const kept = await readShared(writer.store, wire.ReservationSchema, key);
    if (kept?.record.holderUid !== holder.uid) continue;
    await deleteRecord(writer, key, kept.revision);
  }
}

interface NamedDisk {
  readonly device: string;
  readonly name: DiskName;
}

/** The host's own disks: shared storage, such as a LUN, belongs to no host. */
function namesIn(inventory: Inventory): NamedDisk[] {
  return decideToWrite(inventory, undefined).flatMap(({ kind, device }) => {
    if (kind === 'listed') return [];
    return diskNames(device).map((name) => ({ device: deviceIdentity(device), name }));
  });
}

/** Takes a name for a host; if another host has it, returns that host. */
async function hold(
  writer: RecordWriter,
  { name: host, uid }: ReservationHolder,
  name: DiskName,
): Promise<string | undefined> {
  const key = keyOf(name);
  const record = create(wire.ReservationSchema, { holder: host, holderUid: uid });
  let by = 'another host';
  // A caller that loses the race for the key learns who has it.
  for (let round = 0; round < roundsMax; round += 1) {
    const kept = await readShared(writer.store, wire.ReservationSchema, key);
    if (kept?.record.holderUid === uid) return undefined;
    if (kept !== undefined && (await isThere(writer.store, kept.record, name))) {
      return kept.record.holder;
    }
    by = kept?.record.holder ?? by;
    const expected = kept?.revision ?? 'absent';
    const written = await writeShared(writer, wire.ReservationSchema, key, record, expected);
    if (written.kind === 'ok') return undefined;
  }
  return by;
}

const roundsMax = 5;

/** K1 */
async function isThere(
  store: ReadableStore,
  { holder, holderUid }: wire.Reservation,
  name: DiskName,
): Promise<boolean> {
  const found = await orUnavailable(store.get(storeKey(...holder.split('/'))));
  if (found.kind === 'absent') return false;
  const { host } = sharedRecordOf(store, wire.HostRecordSchema, found);
  if (host?.uid !== holderUid) return false;
  const { run } = host.status ?? {};
  if (run !== undefined && run.phase !== RunPhase.ENDED) return true;
  const facts = await readShared(store, wire.HostFactsSchema, storeKey('facts', idOf(holder)));
  const devices = facts?.record.hostUid === holderUid ? facts.record.inventory?.devices : undefined;
  return devices?.some((device) => hasDiskName(device, name)) === true;
}

function hasDiskName(device: StorageDevice, { kind, value }: DiskName): boolean {
  return diskNames(device).some((own) => own.kind === kind && own.value === value);
}

function keyOf({ kind, value }: DiskName): string {
  return storeKey('reservations', `disk-${kind}`, keySegment(value));
}
