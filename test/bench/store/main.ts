/**
 * Compares the drivers of the store: writes and reads a second, and what a listing takes.
 *
 *   node test/bench/store/main.ts [hosts]
 *
 * Values have 1 KiB. NATS runs as one and as three servers on this machine, syncing before each
 * acknowledgement as production must; without the server program its rows are left out.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import {
  MemoryDisk,
  openMemoryStore,
  openNatsStore,
  openSqliteStore,
  type StateStore,
  storeKey,
} from '@rackwright/store';
import { NatsCluster, serverMissing } from '@rackwright/store/testing';
import { programArguments, wholeArgument } from '../../program-arguments.ts';

const VALUE = new Uint8Array(1024).fill(0x61);
/** Calls on their way at once, as a busy control plane has them. */
const IN_FLIGHT = 64;
/** Writes one after another: each waits for the disk. */
const SEQUENTIAL_WRITES = 300;

interface Candidate {
  readonly name: string;
  open(): Promise<{ store: StateStore; dispose(): Promise<void> }>;
}

const candidates: readonly Candidate[] = [
  { name: 'memory', open: openMemory },
  { name: 'sqlite', open: openSqlite },
  { name: 'nats, 1 server', open: () => openCluster(1) },
  { name: 'nats, 3 servers', open: () => openCluster(3) },
];

async function openMemory() {
  const store = await openMemoryStore({ random: nodeRandom(), disk: new MemoryDisk() });
  return { store, dispose: () => store.close() };
}

async function openSqlite() {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    random: nodeRandom(),
    clock: nodeClock(),
  });
  return {
    store,
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

async function openCluster(servers: 1 | 3) {
  const cluster = await NatsCluster.start({ servers, syncAlways: true });
  const store = await openNatsStore({
    servers: cluster.addresses,
    random: nodeRandom(),
    replicas: servers,
    durability: { kind: 'monitors', urls: cluster.monitors },
  });
  return {
    store,
    async dispose() {
      await store.close();
      await cluster.dispose();
    },
  };
}

/** Seconds that `work` takes. */
async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

/** Calls `work` for 0 … count − 1, so many at once. */
async function inFlight(count: number, work: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const at = next;
      next += 1;
      await work(at);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

async function create(store: StateStore, at: number): Promise<number> {
  const result = await store.put(storeKey('hosts', `h${at}`), VALUE, 'absent');
  if (result.kind !== 'ok') throw new Error(`a creation was answered ${JSON.stringify(result)}`);
  return result.revision;
}

async function updateInTurn(store: StateStore, key: string): Promise<void> {
  let revision: number | 'absent' = 'absent';
  for (let round = 0; round < SEQUENTIAL_WRITES; round += 1) {
    const result = await store.put(key, VALUE, revision);
    if (result.kind !== 'ok') throw new Error(`an update was answered ${JSON.stringify(result)}`);
    revision = result.revision;
  }
}

async function seeAll(store: StateStore, count: number): Promise<void> {
  let seen = 0;
  for await (const _ of store.watch(0, 'hosts')) {
    seen += 1;
    if (seen === count) return;
  }
}

async function measure(store: StateStore, hosts: number): Promise<Record<string, string>> {
  const creating = await secondsOf(() => inFlight(hosts, (at) => create(store, at)));
  const inTurn = await secondsOf(() => updateInTurn(store, storeKey('racks', 'r1')));
  const reading = await secondsOf(() =>
    inFlight(hosts, (at) => store.get(storeKey('hosts', `h${at}`))),
  );
  const listing = await secondsOf(() => store.list('hosts'));
  const watching = await secondsOf(() => seeAll(store, hosts));
  return {
    [`creates/s, ${IN_FLIGHT} at once`]: (hosts / creating).toFixed(0),
    'updates/s, in turn': (SEQUENTIAL_WRITES / inTurn).toFixed(0),
    [`gets/s, ${IN_FLIGHT} at once`]: (hosts / reading).toFixed(0),
    [`list of ${hosts}, ms`]: (listing * 1000).toFixed(0),
    'watched changes/s': (hosts / watching).toFixed(0),
  };
}

const { positionals } = programArguments({ allowPositionals: true, options: {} });
const hosts = wholeArgument('hosts', positionals[0] ?? '5000');
const rows: Record<string, Record<string, string>> = {};
for (const { name, open } of candidates) {
  if (name.startsWith('nats') && serverMissing() !== undefined) {
    console.log(`${name} is left out: ${serverMissing()}`);
    continue;
  }
  const { store, dispose } = await open();
  rows[name] = await measure(store, hosts);
  await dispose();
}
console.table(rows);
