/**
 * The reads and writes of a call do not grow with the number of unrelated hosts. Counted, not
 * timed: returned values, their bytes, writes, and rows of the fleet view, with few hosts and with
 * many. Work for every host at the start is the same for each. Other tests check that no statement
 * of SQLite reads more than it returns.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  DiscoveredMachineSchema,
  HostState,
  HostView,
  type InventorySchema,
  Role,
  WatchHostsResponse_Kind,
  store as wire,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { connect, type OperatorClients, operatorClients } from '@rackwright/rpc';
import { MemoryDisk, openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { ControlPlane } from '../control-plane.ts';
import { FleetRows } from '../fleet-view/rows.ts';
import { type Cost, costSince, countedStore } from '../records/counted.fixture.ts';
import { preparedHost, putHost } from './prepared.fixture.ts';
import { startOn } from './rpc.fixture.ts';

const [fewHosts, manyHosts] = [200, 2_000] as const;
const hostsPerRack = 20;
const host = 'hosts/h101';
const rack = 'racks/r2';
const smallPool = 'small';
/** In at least one of this many counts a fleet has no background work. */
const tries = 4;
/** The effects of a call are over when this many looks in a row count nothing. */
const quietLooks = 5;
const lookMs = 50;
const waitMsMax = 60_000;

/** Rows of fleet views that were read, by any caller. */
const visits = vi.spyOn(FleetRows.prototype, 'get');

const pause = (ms: number) => new Promise<void>((resolve) => nodeClock().after(ms, resolve));

/** The cost of one call. */
interface CallCost extends Cost {
  readonly visited: number;
}

interface Scope {
  readonly racks: string[];
  readonly pools: string[];
}

/** A caller that sees everything, and one that does not. */
interface Callers extends OperatorClients {
  readonly ofRack: OperatorClients;
  readonly ofPool: OperatorClients;
  /** An agent's reports of machines, and the looks at all of them. */
  readonly machines: ControlPlane['discovery'];
}

/** A control plane with idle hosts, started on a store that has them already. */
class Fleet {
  readonly #folder: string;
  readonly #disk = new MemoryDisk();
  #started: Awaited<ReturnType<Fleet['startUp']>> | undefined;
  #scoped: Callers | undefined;
  start: Cost = { rows: 0, bytes: 0, written: 0 };

  constructor(folder: string) {
    this.#folder = folder;
  }

  static async of(hosts: number): Promise<Fleet> {
    const fleet = new Fleet(await mkdtemp(join(tmpdir(), 'rackwright-cost-')));
    const started = await fleet.startUp();
    fleet.#started = started;
    const { clients, controlPlane, store, channel } = started;
    const credential = { username: 'admin', password: 'secret' };
    for (const credentialId of ['bmc', 'spare']) {
      await clients.credentials.createCredential({ credentialId, credential });
    }
    for (let at = 1; at <= hosts / hostsPerRack; at += 1) {
      const spec = { discovery: { enabled: true } };
      await clients.racks.createRack({ rackId: `r${at}`, rack: { spec } });
    }
    const each = Array.from({ length: hosts }, (_, at) => at + 1);
    await Promise.all(each.map((n) => putHostOf(store, n, hosts)));
    await Promise.all(each.map((n) => putListedOf(store, n, hosts)));
    await fleet.settled(2 * quietLooks);
    channel.close();
    await controlPlane.close();
    fleet.#started = await fleet.startUp();
    await fleet.settled(2 * quietLooks);
    fleet.start = { ...fleet.#started.cost };
    await fleet.#callers();
    return fleet;
  }

  async startUp() {
    const kept = { random: nodeRandom(), clock: nodeClock(), disk: this.#disk };
    const { store, cost } = countedStore(await openMemoryStore(kept));
    // Periodic looks at everything do not happen within this test.
    const extras = { config: { resyncIntervalMs: 86_400_000 } };
    const controlPlane = await startOn(this.#folder, store, undefined, extras);
    const token = (await readFile(join(this.#folder, 'identity/admin.token'), 'utf8')).trim();
    const { caCertificatePem: caPem } = controlPlane.identity;
    const channel = connect({ target: `127.0.0.1:${controlPlane.operatorsPort}`, caPem });
    const clients = operatorClients(channel, token);
    const scoped = async (tokenId: string, scope: Scope) => {
      const expireTime = timestampFromMs(nodeClock().nowMs() + 3_600_000);
      const made = { role: Role.OPERATOR, expireTime, scope };
      const { secret } = await clients.access.createToken({ tokenId, token: made });
      return operatorClients(channel, secret);
    };
    return { store, cost, controlPlane, channel, clients, scoped };
  }

  /** Callers that see only one rack, and one pool of few hosts. */
  async #callers() {
    const { clients, scoped, controlPlane } = this.#running();
    const ofRack = await scoped('of-rack', { racks: [rack], pools: [] });
    const ofPool = await scoped('of-pool', { racks: [], pools: [smallPool] });
    this.#scoped = { ...clients, ofRack, ofPool, machines: controlPlane.discovery };
  }

  #running() {
    if (this.#started === undefined) throw new Error('not started');
    return this.#started;
  }

  /**
   * Waits until `looks` looks in a row have counted nothing. Looks, not time: on a busy machine the
   * control plane, which is in this process, runs between any two of them.
   */
  async settled(looks: number): Promise<void> {
    const { cost } = this.#running();
    const counted = () => cost.rows + cost.written + visits.mock.calls.length;
    let [seen, quiet] = [counted(), 0];
    for (let waitedMs = 0; quiet < looks; waitedMs += lookMs) {
      if (waitedMs > waitMsMax) throw new Error('the control plane never comes to rest');
      await pause(lookMs);
      quiet = counted() === seen ? quiet + 1 : 0;
      seen = counted();
    }
  }

  /** The cost of `call`, including its effects. */
  async costOf(call: Call): Promise<CallCost> {
    const { cost } = this.#running();
    const clients = this.#scoped;
    if (clients === undefined) throw new Error('not started');
    const found: CallCost[] = [];
    for (let time = 0; time <= tries; time += 1) {
      const before = { ...cost };
      visits.mockClear();
      await call(clients, time);
      await this.settled(quietLooks);
      // The first time fills caches.
      if (time > 0) found.push({ ...costSince(before, cost), visited: visits.mock.calls.length });
    }
    // The hourly sweep of either fleet reads each of its rows, which `rows` alone does not show.
    const looks = ({ rows, visited }: CallCost): number => rows + visited;
    return found.reduce((least, each) => (looks(each) < looks(least) ? each : least));
  }

  async stop(): Promise<void> {
    this.#started?.channel.close();
    await this.#started?.controlPlane.close();
    await rm(this.#folder, { recursive: true });
  }
}

async function putHostOf(store: StateStore, n: number, hosts: number): Promise<void> {
  const record = preparedHost(n, { state: HostState.MANAGEABLE, kind: undefined });
  const { spec } = record.host ?? {};
  if (spec === undefined) throw new Error('no host');
  spec.rack = `racks/r${1 + (n % (hosts / hostsPerRack))}`;
  if (spec.rack === rack && record.host) record.host.labels['pool'] = smallPool;
  await putHost(store, record);
  const facts = create(wire.HostFactsSchema, {
    ...{ hostUid: `u${n}`, inventory: inventoryOf(`SN-${n}`, spec.bootMacs[0] ?? '') },
  });
  const key = storeKey('facts', `h${n}`);
  await store.put(key, toBinary(wire.HostFactsSchema, facts), 'absent');
}

/** A machine that another rack lists, and a line that waits for a third one. */
async function putListedOf(store: StateStore, n: number, hosts: number): Promise<void> {
  const id = `m${n}`;
  const inRack = `racks/r${3 + (n % (hosts / hostsPerRack - 2))}`;
  const hex = (byte: number): string => byte.toString(16).padStart(2, '0');
  const mac = `52:54:00:97:${hex(n >> 8)}:${hex(n & 255)}`;
  const machine = create(DiscoveredMachineSchema, {
    ...{ name: `discoveredMachines/${id}`, uid: id, rack: inRack, bootMac: mac },
    ...{ inventory: inventoryOf(`LISTED-${n}`, mac), bmcAddress: `10.97.${n >> 8}.${n & 255}` },
    notAccepted: 'no expected host and no rule of its rack fits it',
  });
  const listed = create(wire.DiscoveredMachineRecordSchema, { machine });
  const machineKey = storeKey('discoveredMachines', id);
  await store.put(machineKey, toBinary(wire.DiscoveredMachineRecordSchema, listed), 'absent');
  const match = { serial: `EXPECTED-${n}` };
  const line = { name: `expectedHosts/e${n}`, uid: `e${n}`, match };
  const expected = create(wire.ExpectedHostRecordSchema, { expectedHost: line });
  const lineKey = storeKey('expectedHosts', `e${n}`);
  await store.put(lineKey, toBinary(wire.ExpectedHostRecordSchema, expected), 'absent');
}

function inventoryOf(serial: string, ...macs: string[]): MessageInitShape<typeof InventorySchema> {
  return { system: { serial }, interfaces: macs.map((mac) => ({ mac })) };
}

/** A machine that netbooted from an interface that no host has. */
function findingOf(serial: string, time: number, ...macs: string[]) {
  const bootMac = `52:54:00:98:00:0${time}`;
  const inventory = inventoryOf(serial, bootMac, ...macs);
  const bmcAddress = `10.98.0.${time}`;
  return create(agent.DiscoveredSchema, { id: `f${time}`, bootMac, inventory, bmcAddress });
}

let few: Fleet;
let many: Fleet;

beforeAll(async () => {
  few = await Fleet.of(fewHosts);
  many = await Fleet.of(manyHosts);
});

afterAll(async () => {
  await few.stop();
  await many.stop();
  visits.mockRestore();
});

type Call = (clients: Callers, time: number) => Promise<unknown>;

/** At the address that the machine reports. */
const anyBmc = { credential: 'credentials/bmc' };

/** A watch of hosts until all present ones have come. */
async function untilSynced({ hosts }: OperatorClients): Promise<void> {
  for await (const { kind } of hosts.watchHosts({})) {
    if (kind === WatchHostsResponse_Kind.SYNCED) return;
  }
}

const calls: Readonly<Record<string, Call>> = {
  get: ({ hosts }) => hosts.getHost({ name: host }),
  'a page of hosts': ({ hosts }) => hosts.listHosts({ pageSize: 50 }),
  'a page of the hosts that a caller of one rack sees': async ({ ofRack }) => {
    const { hosts, nextPageToken } = await ofRack.hosts.listHosts({ pageSize: 50 });
    expect(hosts.length).toBeGreaterThanOrEqual(hostsPerRack);
    expect(nextPageToken).toBe('');
  },
  'a page of the hosts that a caller of one pool sees': ({ ofPool }) =>
    ofPool.hosts.listHosts({ pageSize: 50 }),
  'counting hosts, for a rack': ({ ofRack }) => ofRack.hosts.countHosts({ groupBy: 'state' }),
  'a watch of hosts, for a rack': ({ ofRack }) => untilSynced(ofRack),
  'the hosts of a rack': ({ hosts }) => hosts.listHosts({ rack, pageSize: 50 }),
  'finding a host': ({ hosts }) => hosts.listHosts({ filter: 'boot_macs:52:54:00:00:00:65' }),
  'a sorted page of the hosts of a rack': ({ hosts }) =>
    hosts.listHosts({ rack, orderBy: 'create_time desc', pageSize: 50, view: HostView.BASIC }),
  'counting hosts': ({ hosts }) => hosts.countHosts({ groupBy: 'state' }),
  'explaining a host': ({ hosts }) => hosts.explainHost({ name: host }),
  'explaining a rack': ({ racks }) => racks.explainRack({ name: rack }),
  'the credentials that are used in a rack': async ({ ofRack }) => {
    const { credentials } = await ofRack.credentials.listCredentials({});
    expect(credentials.map(({ name }) => name)).toEqual(['credentials/bmc']);
  },
  'a rack in which a pool has hosts': ({ ofPool }) => ofPool.racks.getRack({ name: rack }),
  'a rack in which a pool has none': ({ ofPool }) =>
    expect(ofPool.racks.getRack({ name: 'racks/r3' })).rejects.toThrow(),
  'the audit log, for a rack': ({ ofRack }) => ofRack.audit.listAuditRecords({ pageSize: 10 }),
  'the workflows of a host': ({ workflows }) => workflows.listWorkflows({ parent: host }),
  'the runs of a host': ({ history }) => history.listHostRuns({ parent: host }),
  'making a host': ({ hosts }, time) => {
    const bmc = { address: `10.99.0.${time}`, credential: 'credentials/bmc' };
    const spec = { rack, bmc, bootMacs: [`52:54:00:99:00:0${time}`] };
    return hosts.createHost({ hostId: `new${time}`, host: { spec } });
  },
  'the finding of an unknown machine': async ({ machines }, time) =>
    expect(await machines.report('r2', findingOf(`UNKNOWN-${time}`, time))).toEqual({
      kind: 'listed',
    }),
  'the finding of a machine that is a host': async ({ machines }, time) => {
    const finding = findingOf('SN-101', time, '52:54:00:00:00:65');
    expect(await machines.report('r2', finding)).toMatchObject({
      kind: 'refused',
      cause: agent.DiscoveryRefusalKind.HOST,
      text: expect.stringContaining('it is hosts/h101') as string,
    });
  },
  'a look at the machines of a rack': async ({ machines }) => machines.wakeRack('racks/r2'),
  'the machines that a rack lists': ({ discovery }) =>
    discovery.listDiscoveredMachines({ rack: 'racks/r2' }),
  'a line of the manifest': ({ discovery }, time) =>
    discovery.createExpectedHost({
      expectedHostId: `line${time}`,
      expectedHost: { match: { serial: `LINE-${time}` }, spec: { rack, bmc: anyBmc } },
    }),
  // Its machine comes with it: each time the same number of others wait.
  'making a machine a host': async ({ discovery, machines }, time) => {
    const serial = `FOUND-${time}`;
    await machines.report('r2', findingOf(serial, tries + 1 + time));
    const { discoveredMachines } = await discovery.listDiscoveredMachines({ rack });
    const found = discoveredMachines.find(({ inventory }) => inventory?.system?.serial === serial);
    const name = found?.name ?? '';
    expect(name).not.toBe('');
    const hostId = `found${time}`;
    const spec = { rack, bmc: anyBmc };
    await discovery.acceptDiscoveredMachine({ name, hostId, host: { spec } });
  },
};

/** Numbers, and so names, are a little longer where there are more. */
const slack = (least: number) => least * 1.1 + 200;

test.each(Object.entries(calls))('%s costs the same with ten times the hosts', async (_, call) => {
  const [least, most] = [await few.costOf(call), await many.costOf(call)];
  expect(least.rows + least.visited, 'nothing was counted').toBeGreaterThan(0);
  const counts = ({ rows, written, visited }: CallCost) => ({ rows, written, visited });
  expect(counts(most)).toEqual(counts(least));
  expect(most.bytes).toBeLessThan(slack(least.bytes));
});

test('starting costs the same for each host, however many there are', () => {
  const [least, most] = [few.start.rows / fewHosts, many.start.rows / manyHosts];
  expect(least).toBeGreaterThan(1);
  expect(most).toBeLessThan(least * 1.1);
  expect(many.start.written).toBeLessThan(few.start.written + 20);
});

test('the cost meter counts a call that reads all hosts or visits all rows', async () => {
  const reading: Call = ({ hosts }) => hosts.listHosts({ pageSize: 1_000 });
  const [least, most] = [await few.costOf(reading), await many.costOf(reading)];
  expect(most.rows).toBeGreaterThan(least.rows * 2);
  // There is no index of labels.
  const looking: Call = ({ hosts }) => hosts.listHosts({ filter: 'labels.site = nowhere' });
  const [looked, lookedAtMany] = [await few.costOf(looking), await many.costOf(looking)];
  expect(looked.visited).toBeGreaterThanOrEqual(fewHosts);
  expect(lookedAtMany.visited).toBeGreaterThanOrEqual(manyHosts);
});
