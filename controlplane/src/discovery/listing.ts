/**
 * Writes about a discovered machine: its listing, and the first facts of its host. Every write is
 * conditional on the revision that was read.
 */
import { clone, create, equals } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  DiscoveredMachineSchema,
  type MachineId,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { deleteRecord, type RecordWriter, readRecord, writeRecord } from '../records/index.ts';
import { bounded } from './judge.ts';
import type { KeptMachine } from './kept.ts';
import { twinsOf } from './lookup.ts';
import type { DiscoverySnapshot, KnownHost } from './snapshot.ts';

/** The most other machines that a listing names. */
const twinsMax = 8;

/** Whether the write succeeded: no other writer was first. */
export async function writeMachine(
  writer: RecordWriter,
  id: MachineId,
  machine: DiscoveredMachine,
  revision: number | 'absent',
): Promise<boolean> {
  const schema = wire.DiscoveredMachineRecordSchema;
  const record = create(schema, { machine });
  const written = await writeRecord(writer, schema, machineKey(id), record, revision);
  return written.kind === 'ok';
}

/** A machine that was seen again in the meantime stays until the next pass. */
export async function removeMachine(
  writer: RecordWriter,
  { id, revision }: KeptMachine,
): Promise<boolean> {
  return (await deleteRecord(writer, machineKey(id), revision)).kind === 'ok';
}

/** Writes at the machine why it is not a host yet. */
export async function noteReason(
  writer: RecordWriter,
  kept: KeptMachine,
  text: string,
  snapshot: DiscoverySnapshot,
): Promise<void> {
  const { id, machine, revision } = kept;
  const next = clone(DiscoveredMachineSchema, machine);
  next.notAccepted = bounded(text);
  // D5: the report of another rack appears in the remarks of the rack (`remarksOf`), not here.
  const twins = twinsOf(kept, snapshot.machines).filter((twin) => {
    return twin.machine.rack === machine.rack;
  });
  next.remarks = twins.slice(0, twinsMax).map((twin) => `${twin.machine.name} has the same UUID`);
  if (!equals(DiscoveredMachineSchema, next, machine))
    await writeMachine(writer, id, next, revision);
}

/** The host begins with the facts of the finding, unless it already has newer ones. */
export async function seedFacts(
  writer: RecordWriter,
  { hostId, uid, hasInventory }: Pick<KnownHost, 'hostId' | 'uid' | 'hasInventory'>,
  { inventory }: DiscoveredMachine,
): Promise<void> {
  if (hasInventory || inventory === undefined) return;
  const key = storeKey('facts', hostId);
  const schema = wire.HostFactsSchema;
  const kept = await readRecord(writer.store, schema, key);
  const isMine = kept?.record.hostUid === uid;
  if (isMine && kept.record.inventory !== undefined) return;
  const facts = isMine ? clone(schema, kept.record) : create(schema, { hostUid: uid });
  facts.inventory = inventory;
  await writeRecord(writer, schema, key, facts, kept?.revision ?? 'absent');
}

function machineKey(id: MachineId): string {
  return storeKey('discoveredMachines', id);
}
