/**
 * Fills a store with hosts: the control plane makes the first ones. The others are written as it
 * has written those, and what their lives would have left in the form in which it keeps that
 * (facts, finished runs).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { clone, create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { reservedValues, usualBytes } from '@rackwright/controlplane';
import {
  ApiFailure,
  asRunNumber,
  type Host,
  type HostUid,
  InventorySchema,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import type { OperatorClients } from '@rackwright/rpc';
import { openSqliteStore, type StateStore, storeKey } from '@rackwright/store';

/** Creations under way at once. */
export const atOnce = 64;
/** Writes under way at once: a transaction of the driver. */
const writesAtOnce = 256;
/** Hosts that the control plane makes itself. */
const madeHosts = 100;
const hostsPerRack = 200;
const disksPerHost = 8;
const stepsPerRun = 12;
/** As a host has that was enrolled and cleaned. */
const pastRuns = [RunKind.VERIFY, RunKind.INSPECT, RunKind.CLEAN];

export const rackOf = (index: number, hosts: number) =>
  `racks/r${index % Math.ceil(hosts / hostsPerRack)}`;

/** Calls `work` with 0 … count − 1, so many at once. */
export async function inParallel(
  count: number,
  work: (index: number) => Promise<unknown>,
  most: number = atOnce,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: most }, worker));
}

/** Host `index`, with addresses of its own. */
export function creationOf(index: number, rack: string) {
  const bytes = [index >> 16, (index >> 8) & 255, index & 255];
  const mac = ['52:54:00', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
  const bmc = { address: `10.${bytes.join('.')}`, credential: 'credentials/c1' };
  const hostId = `h${index}`;
  return { hostId, requestId: hostId, host: { spec: { rack, bmc, bootMacs: [mac] } } };
}

/** Makes the host, also over a connection that takes the place of one that was dropped. */
export async function makeHost(
  client: OperatorClients['hosts'],
  creation: ReturnType<typeof creationOf>,
): Promise<void> {
  for (let left = 5; ; left -= 1) {
    try {
      await client.createHost(creation);
      return;
    } catch (error) {
      const isDropped = error instanceof ApiFailure && error.error.kind === 'unavailable';
      if (!isDropped || left === 0) throw error;
      await sleep(200);
    }
  }
}

/** A frozen fleet, so that nothing moves, with the first of its hosts. */
export async function createFleet(
  { racks, fleet, credentials, hosts: client }: OperatorClients,
  hosts: number,
): Promise<void> {
  const credential = { username: 'admin', password: 'secret' };
  await credentials.createCredential({ credentialId: 'c1', credential });
  for (let rack = 0; rack < Math.ceil(hosts / hostsPerRack); rack += 1) {
    await racks.createRack({ rackId: `r${rack}` });
  }
  await fleet.freezeFleet({ reason: 'a benchmark' });
  await inParallel(Math.min(hosts, madeHosts), (index) =>
    makeHost(client, creationOf(index, rackOf(index, hosts))),
  );
}

/** The hosts that are missing, and the past of all, in the store at `path` that nobody has open. */
export async function addHosts(path: string, hosts: number): Promise<void> {
  const store = await openSqliteStore({
    ...{ path, random: nodeRandom(), clock: nodeClock() },
    dictionary: usualBytes(),
  });
  const first = await store.get('hosts.h0');
  if (first.kind === 'absent') throw new Error('the store has no host that others could be as');
  const model = fromBinary(wire.HostRecordSchema, first.value);
  const writeHost = async (index: number) => {
    if (index >= madeHosts) await addHost(store, copyOfHost(model, index, hosts));
    const found = await store.get(`hosts.h${index}`);
    if (found.kind === 'absent') throw new Error(`host h${index} was not made`);
    await addPast(store, fromBinary(wire.HostRecordSchema, found.value).host);
  };
  await inParallel(hosts, writeHost, writesAtOnce);
  await store.close();
}

function copyOfHost(model: wire.HostRecord, index: number, hosts: number): wire.HostRecord {
  const { host } = clone(wire.HostRecordSchema, model);
  const { hostId, host: created } = creationOf(index, rackOf(index, hosts));
  if (host?.spec === undefined) throw new Error('the first host has no spec');
  host.name = `hosts/${hostId}`;
  host.uid = randomId(nodeRandom());
  const { bmc, ...spec } = created.spec;
  Object.assign(host.spec, spec);
  if (host.spec.bmc !== undefined) Object.assign(host.spec.bmc, bmc);
  return { ...model, host };
}

/** The record, and its addresses as reserved. */
async function addHost(store: StateStore, record: wire.HostRecord): Promise<void> {
  const { host } = record;
  if (host?.spec === undefined) return;
  const { name, uid, spec } = host;
  const holder = create(wire.ReservationSchema, { holder: name, holderUid: uid });
  const reservation = toBinary(wire.ReservationSchema, holder);
  for (const { key } of reservedValues(spec)) await store.put(key, reservation, 'absent');
  const key = storeKey(...name.split('/'));
  await store.put(key, toBinary(wire.HostRecordSchema, record), 'absent');
}

/** Facts and finished runs. */
async function addPast(store: StateStore, host: Host | undefined): Promise<void> {
  if (host === undefined) return;
  const facts = toBinary(wire.HostFactsSchema, factsOf(host.uid));
  await store.put(storeKey('facts', idOf(host.name)), facts, 'absent');
  for (const [at, kind] of pastRuns.entries()) {
    const run = runOf(kind, at);
    const record = create(wire.FinishedRunRecordSchema, {
      ...{ host: host.name, hostUid: host.uid, run },
    });
    const key = storeKey('runs', host.uid, `${run.number}`);
    await store.put(key, toBinary(wire.FinishedRunRecordSchema, record), 'absent');
  }
}

function idOf(name: string): string {
  return name.split('/')[1] ?? '';
}

function factsOf(hostUid: HostUid) {
  const devices = Array.from({ length: disksPerHost }, (_, at) => ({
    ...{ device: `nvme${at}`, model: 'BENCH SSD 3840', serial: `${hostUid}-${at}` },
    sizeBytes: 3_840_755_982_336n,
  }));
  return create(wire.HostFactsSchema, { hostUid, inventory: create(InventorySchema, { devices }) });
}

function runOf(kind: RunKind, at: number) {
  const endMs = nodeClock().nowMs() - 3_600_000 * (pastRuns.length - at);
  const steps = Array.from({ length: stepsPerRun }, (_, step) => ({
    ...{ name: `device.step${step}`, state: StepState.SUCCEEDED },
    startTime: timestampFromMs(endMs - 60_000),
    endTime: timestampFromMs(endMs),
  }));
  // Before the first run of the host's own record.
  return create(RunSchema, {
    ...{ number: asRunNumber(at + 1), kind, steps, phase: RunPhase.ENDED },
    ...{ outcome: RunOutcome.SUCCEEDED, startTime: timestampFromMs(endMs - 120_000) },
    endTime: timestampFromMs(endMs),
  });
}
