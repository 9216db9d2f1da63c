/**
 * An agent's report, and a pass over a host, cost the same for any number of other hosts: counted
 * at the store, with few hosts and with many.
 */
import { HostGoal, HostState, store as wire } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { beforeAll, expect, test } from 'vitest';
import { type Cost, type Counted, costSince, countedStore } from '../records/counted.fixture.ts';
import { reservedValues } from './fleet/reservations.ts';
import { erased, inspected, newHost, virtioDisk } from './testing/bench.ts';
import {
  afterErase,
  complete,
  connectAgent,
  type PlainAgent,
  proved,
  runnerUp,
} from './testing/plain-agent.ts';
import { type Replica, Rig } from './testing/rig.ts';

const [fewHosts, manyHosts] = [200, 2_000] as const;
const hostsPerRack = 20;

/** One host with work of its agent, among many idle ones. */
class Fleet {
  readonly rig = new Rig();
  readonly hosts: number;
  #counted: Counted | undefined;
  #replica: Replica | undefined;
  #agent: PlainAgent | undefined;

  constructor(hosts: number) {
    this.hosts = hosts;
  }

  async start(): Promise<void> {
    const { rig } = this;
    rig.addRack('r1');
    rig.addHost(1);
    for (let n = 2; n <= this.hosts; n += 1) this.#addIdle(n);
    this.#replica = await rig.replica({
      wrapStore: (inner) => {
        this.#counted = countedStore(inner);
        return this.#counted.store;
      },
    });
    this.#agent = await connectAgent(rig, this.replica);
    for (let left = 100; left > 0 && !this.replica.hosts.isAgentConnected('r1'); left -= 1) {
      await rig.advance(100);
    }
    // Until its first operation has come.
    for (let left = 100; left > 0 && this.#agent.ids().length === 0; left -= 1) {
      await rig.advance(100);
    }
  }

  /** At its goal; in a rack without an agent. */
  #addIdle(n: number): void {
    const rackId = `r${2 + (n % (this.hosts / hostsPerRack))}`;
    if (this.rig.rack(rackId) === undefined) this.rig.addRack(rackId);
    const bmc = { address: `10.1.${n >> 8}.${n & 255}`, credential: 'credentials/c1' };
    const bootMacs = [`52:54:01:00:${hex(n >> 8)}:${hex(n & 255)}`];
    const goal = HostGoal.MANAGEABLE;
    const record = newHost({ rack: `racks/${rackId}`, bmc, bootMacs, goal });
    const { host } = record;
    if (host?.spec === undefined || host.status === undefined) throw new Error('no host');
    Object.assign(host, { name: `hosts/h${n}`, uid: `u${n}` });
    host.status.state = HostState.MANAGEABLE;
    for (const { key } of reservedValues(host.spec)) {
      const reservation = { holder: host.name, holderUid: host.uid };
      this.rig.put(key, wire.ReservationSchema, reservation);
    }
    this.rig.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
  }

  get replica(): Replica {
    if (this.#replica === undefined) throw new Error('not started');
    return this.#replica;
  }

  async costOf(work: Work): Promise<Cost> {
    if (this.#counted === undefined || this.#agent === undefined) throw new Error('not started');
    const { cost } = this.#counted;
    const before = { ...cost };
    await work(this, this.#agent);
    return costSince(before, cost);
  }
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

type Work = (fleet: Fleet, plain: PlainAgent) => Promise<unknown>;

const runPass: Work = async ({ rig, replica }) => {
  replica.hosts.wake('h1');
  await rig.advance(1);
};

/** In this order: each goes on where the one before has ended. */
const works: readonly (readonly [string, Work])[] = [
  ['a heartbeat', (_, plain) => plain.heartbeat()],
  ['a pass over a host that waits for its agent', runPass],
  ['the report of a verify', (_, plain) => plain.report(proved())],
  ['the report of a power off', (_, plain) => plain.report(complete())],
  ['the report of a power on', (_, plain) => plain.report(complete())],
  ['the arrival of a runner', ({ rig }, plain) => runnerUp(rig, plain)],
  [
    'the report of an inspection that a clean follows',
    (_, plain) => plain.report(inspected([virtioDisk])),
  ],
  ['the report of the inspection of a clean', (_, plain) => plain.report(inspected([virtioDisk]))],
  [
    'the reports of an erasure and of the power off that ends a run',
    (_, plain) => afterErase(plain, plain.evidence([erased(virtioDisk)])),
  ],
  ['a pass over a host that has reached its goal', runPass],
];

const few = new Fleet(fewHosts);
const many = new Fleet(manyHosts);

beforeAll(async () => {
  await few.start();
  await many.start();
});

/** The total cost of all works. */
const whole: Cost = { rows: 0, bytes: 0, written: 0 };

test.each(works)('%s costs the same with ten times the hosts', async (_, work) => {
  const [least, most] = [await few.costOf(work), await many.costOf(work)];
  for (const each of ['rows', 'bytes', 'written'] as const) whole[each] += least[each];
  expect(least.rows, 'nothing was counted').toBeGreaterThan(0);
  expect(most).toEqual(least);
});

test('the works have led the host to available', () => {
  for (const { rig } of [few, many]) expect(rig.status().state).toBe(HostState.AVAILABLE);
});

test('a host takes 71 reads and 21 writes at most from its verify to available', () => {
  expect(whole.written, 'nothing was counted').toBeGreaterThan(0);
  expect(whole.rows).toBeLessThanOrEqual(71);
  expect(whole.written).toBeLessThanOrEqual(21);
});

test('a pass that looks at all hosts is seen', async () => {
  const scan: Work = ({ replica }) => replica.shared.store.list('hosts');
  const [least, most] = [await few.costOf(scan), await many.costOf(scan)];
  expect(most.rows).toBe(least.rows * (manyHosts / fewHosts));
});
