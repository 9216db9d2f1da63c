/**
 * Fills a store with hosts: the control plane makes them, and what their lives would have left is
 * written in the form in which it keeps that (facts, finished runs).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  InventorySchema,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import type { OperatorClients } from '@rackwright/rpc';
import { openSqliteStore, storeKey } from '@rackwright/store';

/** Creations, and writes, under way at once. */
export const atOnce = 64;
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
): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
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

/** A frozen fleet, so that nothing moves. */
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
  await inParallel(hosts, (index) => makeHost(client, creationOf(index, rackOf(index, hosts))));
}

/** Facts and finished runs of every host in the store at `path`, which nobody else has open. */
export async function addPast(path: string): Promise<void> {
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  const { entries } = await store.list('hosts');
  const put = (key: string, value: Uint8Array) => store.put(key, value, 'absent');
  await inParallel(entries.length, async (index) => {
    const entry = entries[index];
    const host = entry && fromBinary(wire.HostRecordSchema, entry.value).host;
    if (host === undefined) return;
    const facts = toBinary(wire.HostFactsSchema, factsOf(host.uid));
    await put(storeKey('facts', host.name.split('/')[1] ?? ''), facts);
    for (const [at, kind] of pastRuns.entries()) {
      const run = runOf(kind, at);
      const record = create(wire.FinishedRunRecordSchema, {
        ...{ host: host.name, hostUid: host.uid, run },
      });
      const key = storeKey('runs', host.uid, `${run.number}`);
      await put(key, toBinary(wire.FinishedRunRecordSchema, record));
    }
  });
  await store.close();
}

function factsOf(hostUid: string) {
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
    ...{ number: BigInt(at + 1), kind, steps, phase: RunPhase.ENDED },
    ...{ outcome: RunOutcome.SUCCEEDED, startTime: timestampFromMs(endMs - 120_000) },
    endTime: timestampFromMs(endMs),
  });
}
