/**
 * Uniqueness of MAC and BMC addresses across hosts, on a store without transactions: each value is
 * a key that names its holder (DESIGN §10).
 *
 * Invariants:
 * 1. Of several hosts that claim a value, at most one has it confirmed and its record written.
 * 2. A reservation is stale when its holder's record is missing, has another uid, or does not show
 *    that the value is, or becomes, its own: a crash has then lost the release, or the change. Only
 *    a stale reservation may be taken by another host, by compare-and-set.
 * 3. A holder confirms once its record shows that it will have the value. The confirmation writes
 *    each reservation again, so that a rival that judged it stale before loses.
 * 4. A host releases only reservations of its own uid.
 */
import { create } from '@bufbuild/protobuf';
import { type HostSpec, type HostUid, store as wire } from '@rackwright/messages';
import { keySegment, type StateStore, storeKey } from '@rackwright/store';
import {
  deleteRecord,
  type KeptRecord,
  orUnavailable,
  type ReadableStore,
  type RecordWriter,
  readShared,
  sharedRecordOf,
  writeShared,
} from '../../records/index.ts';
import { switchText } from '../bmc/endpoint.ts';
import { isByHand } from '../bmc/protocols.ts';

/** One value that must be unique, and its field in the request. */
export interface ReservedValue {
  readonly key: string;
  /** The value in the form for people. */
  readonly value: string;
  /** Path in Host, e.g. "spec.boot_macs[0]". */
  readonly field: string;
  /** Whether the holder's record shows that the value is, or may become, its own. */
  readonly belongsTo: (record: wire.HostRecord) => boolean;
}

export interface ReservationHolder {
  /** "hosts/h1" */
  readonly name: string;
  readonly uid: HostUid;
}

export type ReserveResult =
  /** All are reserved; this holder did not have `added` before. */
  | { readonly kind: 'reserved'; readonly added: readonly ReservedValue[] }
  /** All added reservations were undone. `taken` names every value that other hosts have. */
  | {
      readonly kind: 'taken';
      readonly taken: readonly { readonly value: ReservedValue; readonly by: string }[];
    };

/** The values that a host with this spec must have. */
export function reservedValues(spec: HostSpec): ReservedValue[] {
  const macs = spec.bootMacs.map((mac, index) => ({
    key: storeKey('reservations', 'mac', keySegment(mac)),
    value: mac,
    field: `spec.boot_macs[${index}]`,
    belongsTo: ({ host }: wire.HostRecord) => host?.spec?.bootMacs.includes(mac) === true,
  }));
  if (spec.bmc === undefined || isByHand(spec)) return macs;
  const endpoint = switchText(spec.bmc);
  const bmc = {
    key: storeKey('reservations', 'bmc', keySegment(endpoint)),
    value: endpoint,
    field: 'spec.bmc.address',
    belongsTo: ({ host }: wire.HostRecord) =>
      host?.spec?.bmc !== undefined && switchText(host.spec.bmc) === endpoint,
  };
  return [...macs, bmc];
}

/** Reserves all of `values` for `holder`, or none beyond what it had. Throws `unavailable`. */
export async function reserve(
  writer: RecordWriter,
  holder: ReservationHolder,
  values: readonly ReservedValue[],
): Promise<ReserveResult> {
  const added: ReservedValue[] = [];
  const taken: { value: ReservedValue; by: string }[] = [];
  for (const value of values) {
    const outcome = await reserveOne(writer, holder, value);
    if (outcome.kind === 'added') added.push(value);
    if (outcome.kind === 'taken') taken.push({ value, by: outcome.by });
  }
  if (taken.length === 0) return { kind: 'reserved', added };
  await releaseReserved(writer, holder, added);
  return { kind: 'taken', taken };
}

/** Invariant 3: true when every value is reserved, and no other host can take it. */
export async function confirm(
  writer: RecordWriter,
  holder: ReservationHolder,
  values: readonly ReservedValue[],
): Promise<boolean> {
  for (const { key } of values) {
    const kept = await readReservation(writer.store, key);
    if (kept?.record.holderUid !== holder.uid) return false;
    const written = await put(writer, key, holder, kept.revision);
    if (written.kind === 'conflict') return false;
  }
  return true;
}

/** Whether the host has every value that its spec names: without them it must not act. */
export async function hasAllReservations(
  store: StateStore,
  uid: HostUid,
  spec: HostSpec,
): Promise<boolean> {
  for (const { key } of reservedValues(spec)) {
    const kept = await readReservation(store, key);
    if (kept?.record.holderUid !== uid) return false;
  }
  return true;
}

/** Whether `reserve` would find every value free, stale, or already its own. Writes nothing. */
export async function couldReserve(
  store: ReadableStore,
  uid: HostUid,
  values: readonly ReservedValue[],
): Promise<boolean> {
  for (const value of values) {
    const kept = await readReservation(store, value.key);
    if (kept === undefined || kept.record.holderUid === uid) continue;
    if (!(await isStale(store, kept.record, value))) return false;
  }
  return true;
}

/** Releases those of `values` that `holder` has (invariant 4). */
export async function releaseReserved(
  writer: RecordWriter,
  holder: ReservationHolder,
  values: readonly ReservedValue[],
): Promise<void> {
  await releaseUnnamed(writer, holder, values, async () => undefined);
}

/**
 * Releases those of `values` that the holder's record does not name; the record is read after the
 * reservations.
 */
export async function releaseUnnamed(
  writer: RecordWriter,
  holder: ReservationHolder,
  values: readonly ReservedValue[],
  readHolder: () => Promise<wire.HostRecord | undefined>,
): Promise<void> {
  const found = await Promise.all(values.map(({ key }) => readReservation(writer.store, key)));
  const record = await readHolder();
  for (const [index, { key, belongsTo }] of values.entries()) {
    const kept = found[index];
    if (kept?.record.holderUid !== holder.uid) continue;
    if (record?.host?.uid === holder.uid && belongsTo(record)) continue;
    // A conflict: in the meantime it was confirmed (3), or another host took it.
    await deleteRecord(writer, key, kept.revision);
  }
}

/** Releases all reservations of a host's record; for the end of its deletion. */
export async function releaseReservations(
  writer: RecordWriter,
  record: wire.HostRecord,
): Promise<void> {
  const { host } = record;
  if (host?.spec === undefined) return;
  await releaseReserved(writer, host, reservedValues(host.spec));
}

type One =
  | { readonly kind: 'added' }
  | { readonly kind: 'had' }
  | { readonly kind: 'taken'; readonly by: string };

/** After this many lost races for the same key, the winner is reported as its holder. */
const roundsMax = 5;

async function reserveOne(
  writer: RecordWriter,
  holder: ReservationHolder,
  value: ReservedValue,
): Promise<One> {
  let by = 'another host';
  for (let round = 0; round < roundsMax; round += 1) {
    const kept = await readReservation(writer.store, value.key);
    if (kept?.record.holderUid === holder.uid) return { kind: 'had' };
    if (kept !== undefined && !(await isStale(writer.store, kept.record, value))) {
      return { kind: 'taken', by: kept.record.holder };
    }
    by = kept?.record.holder ?? by;
    const written = await put(writer, value.key, holder, kept?.revision ?? 'absent');
    if (written.kind === 'ok') return { kind: 'added' };
  }
  return { kind: 'taken', by };
}

function readReservation(
  store: ReadableStore,
  key: string,
): Promise<KeptRecord<wire.Reservation> | undefined> {
  return readShared(store, wire.ReservationSchema, key);
}

function put(
  writer: RecordWriter,
  key: string,
  { name, uid }: ReservationHolder,
  expected: number | 'absent',
) {
  const record = create(wire.ReservationSchema, { holder: name, holderUid: uid });
  return writeShared(writer, wire.ReservationSchema, key, record, expected);
}

/** Invariant 2. */
export async function isStale(
  store: ReadableStore,
  reservation: wire.Reservation,
  { belongsTo }: Pick<ReservedValue, 'belongsTo'>,
): Promise<boolean> {
  const found = await orUnavailable(store.get(storeKey(...reservation.holder.split('/'))));
  if (found.kind === 'absent') return true;
  const record = sharedRecordOf(store, wire.HostRecordSchema, found);
  if (record.host?.uid !== reservation.holderUid) return true;
  return !belongsTo(record);
}
