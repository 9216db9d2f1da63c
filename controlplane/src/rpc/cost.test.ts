/**
 * What a call reads and writes does not grow with the hosts that it is not about. Counted, not
 * timed: rows that SQLite hands over, the bytes of their values, and the rows that are written,
 * with few hosts and with many. What is done for every host at the start is the same for each.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { HostState, HostView } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { connect, operatorClients } from '@rackwright/rpc';
import { openSqliteStore, type StateStore } from '@rackwright/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { preparedHost, putHost } from './prepared.fixture.ts';
import { startOn } from './rpc.fixture.ts';

const [fewHosts, manyHosts] = [200, 2_000] as const;
const hostsPerRack = 20;
/** What else a fleet does by itself meanwhile is in none of so many counts at least. */
const tries = 4;

interface Cost {
  rows: number;
  bytes: number;
  written: number;
}

const nothing = (): Cost => ({ rows: 0, bytes: 0, written: 0 });
/** Whose database is being opened. */
let opening = nothing();
const costs = new WeakMap<StatementSync, Cost>();
const { prepare } = DatabaseSync.prototype;
const { all, get, run } = StatementSync.prototype;

function countRow(cost: Cost | undefined, row: Record<string, unknown> | undefined): void {
  if (cost === undefined || row === undefined) return;
  cost.rows += 1;
  const { value } = row;
  if (value instanceof Uint8Array) cost.bytes += value.byteLength;
}

/** In front of every statement that is prepared from now on. */
function standBefore(): void {
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
    const statement = prepare.call(this, sql);
    costs.set(statement, opening);
    return statement;
  };
  StatementSync.prototype.all = function (this: StatementSync, ...given: unknown[]) {
    const found = Reflect.apply(all, this, given) as ReturnType<typeof all>;
    for (const row of found) countRow(costs.get(this), row);
    return found;
  };
  StatementSync.prototype.get = function (this: StatementSync, ...given: unknown[]) {
    const found = Reflect.apply(get, this, given) as ReturnType<typeof get>;
    countRow(costs.get(this), found);
    return found;
  };
  StatementSync.prototype.run = function (this: StatementSync, ...given: unknown[]) {
    const cost = costs.get(this);
    if (cost !== undefined) cost.written += 1;
    return Reflect.apply(run, this, given) as ReturnType<typeof run>;
  };
}

const pause = (ms: number) => new Promise<void>((resolve) => nodeClock().after(ms, resolve));

/** A control plane with hosts that nothing moves, started on a store that has them already. */
class Fleet {
  readonly cost = nothing();
  readonly #folder: string;
  #started: Awaited<ReturnType<Fleet['startUp']>> | undefined;
  start = nothing();

  constructor(folder: string) {
    this.#folder = folder;
  }

  static async of(hosts: number): Promise<Fleet> {
    const fleet = new Fleet(await mkdtemp(join(tmpdir(), 'rackwright-cost-')));
    const { clients, controlPlane, store, channel } = await fleet.startUp();
    const credential = { username: 'admin', password: 'secret' };
    await clients.credentials.createCredential({ credentialId: 'bmc', credential });
    for (let at = 1; at <= hosts / hostsPerRack; at += 1) {
      await clients.racks.createRack({ rackId: `r${at}` });
    }
    const puts = Array.from({ length: hosts }, (_, at) => putHostOf(store, at + 1, hosts));
    await Promise.all(puts);
    await fleet.settled();
    channel.close();
    await controlPlane.close();
    Object.assign(fleet.cost, nothing());
    fleet.#started = await fleet.startUp();
    await fleet.settled();
    fleet.start = { ...fleet.cost };
    return fleet;
  }

  async startUp() {
    const path = join(this.#folder, 'cost.db');
    opening = this.cost;
    const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
    // What looks at everything from time to time does not within this test.
    const extras = { config: { resyncIntervalMs: 86_400_000 } };
    const controlPlane = await startOn(this.#folder, store, undefined, extras);
    const token = (await readFile(join(this.#folder, 'identity/admin.token'), 'utf8')).trim();
    const { caCertificatePem: caPem } = controlPlane.identity;
    const channel = connect({ target: `127.0.0.1:${controlPlane.operatorsPort}`, caPem });
    return { store, controlPlane, channel, clients: operatorClients(channel, token) };
  }

  get clients() {
    if (this.#started === undefined) throw new Error('not started');
    return this.#started.clients;
  }

  /** Until nothing has been read for a while, or it never ends. */
  async settled(): Promise<void> {
    let seen = -1;
    for (let left = 40; left > 0 && seen !== this.cost.rows; left -= 1) {
      seen = this.cost.rows;
      await pause(400);
    }
  }

  /** What `call` costs, with what it sets off. */
  async costOf(call: Call): Promise<Cost> {
    const found: Cost[] = [];
    for (let time = 0; time <= tries; time += 1) {
      const before = { ...this.cost };
      await call(this.clients, time);
      await pause(250);
      const { rows, bytes, written } = this.cost;
      const cost = {
        rows: rows - before.rows,
        bytes: bytes - before.bytes,
        written: written - before.written,
      };
      // The first time is the one that fills caches.
      if (time > 0) found.push(cost);
    }
    return found.reduce((least, each) => (each.rows < least.rows ? each : least));
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
  await putHost(store, record);
}

let few: Fleet;
let many: Fleet;

beforeAll(async () => {
  standBefore();
  few = await Fleet.of(fewHosts);
  many = await Fleet.of(manyHosts);
});

afterAll(async () => {
  await few.stop();
  await many.stop();
  Object.assign(DatabaseSync.prototype, { prepare });
  Object.assign(StatementSync.prototype, { all, get, run });
});

type Call = (clients: Fleet['clients'], time: number) => Promise<unknown>;

const host = 'hosts/h101';
const rack = 'racks/r2';
const calls: Readonly<Record<string, Call>> = {
  get: ({ hosts }) => hosts.getHost({ name: host }),
  'a page of hosts': ({ hosts }) => hosts.listHosts({ pageSize: 50 }),
  'the hosts of a rack': ({ hosts }) => hosts.listHosts({ rack, pageSize: 50 }),
  'finding a host': ({ hosts }) => hosts.listHosts({ filter: 'boot_macs:52:54:00:00:00:65' }),
  'a sorted page of hosts': ({ hosts }) =>
    hosts.listHosts({ orderBy: 'create_time desc', pageSize: 50, view: HostView.BASIC }),
  'counting hosts': ({ hosts }) => hosts.countHosts({ groupBy: 'state' }),
  'explaining a host': ({ hosts }) => hosts.explainHost({ name: host }),
  'explaining a rack': ({ racks }) => racks.explainRack({ name: rack }),
  'the workflows of a host': ({ workflows }) => workflows.listWorkflows({ parent: host }),
  'the runs of a host': ({ history }) => history.listHostRuns({ parent: host }),
  'making a host': ({ hosts }, time) => {
    const bmc = { address: `10.99.0.${time}`, credential: 'credentials/bmc' };
    const spec = { rack, bmc, bootMacs: [`52:54:00:99:00:0${time}`] };
    return hosts.createHost({ hostId: `new${time}`, host: { spec } });
  },
};

/** Numbers, and with them names, are a little longer where there are more. */
const slack = (least: number) => least * 1.1 + 200;

test.each(Object.entries(calls))('%s costs the same with ten times the hosts', async (_, call) => {
  const [least, most] = [await few.costOf(call), await many.costOf(call)];
  expect(least.rows, 'nothing was counted').toBeGreaterThan(0);
  expect([most.rows, most.written]).toEqual([least.rows, least.written]);
  expect(most.bytes).toBeLessThan(slack(least.bytes));
});

test('starting costs the same for each host, however many there are', () => {
  const [least, most] = [few.start.rows / fewHosts, many.start.rows / manyHosts];
  expect(least).toBeGreaterThan(1);
  expect(most).toBeLessThan(least * 1.1);
  expect(many.start.written).toBeLessThan(few.start.written + 20);
});

test('a call that looks through all hosts is seen', async () => {
  const scan: Call = ({ hosts }) => hosts.listHosts({ pageSize: 1_000 });
  const [least, most] = [await few.costOf(scan), await many.costOf(scan)];
  expect(most.rows).toBeGreaterThan(least.rows * 2);
});
