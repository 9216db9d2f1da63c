/**
 * A pass over a pool costs as much as its hosts, for any number of other hosts: counted at the
 * store and at the rows of the fleet view, with few hosts and with many.
 */
import { asPoolId, HostGoal, HostState, store as wire } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { FleetRows } from '../../fleet-view/index.ts';
import { reservedValues } from '../../host/fleet/reservations.ts';
import { newHost } from '../../host/testing/bench.ts';
import { type Replica, Rig } from '../../host/testing/rig.ts';
import { type Cost, type Counted, costSince, countedStore } from '../../records/counted.fixture.ts';
import { image } from '../decide/rollout.fixture.ts';
import { poolKey } from '../policy/names.ts';
import { Pools } from './loop.ts';

const [fewHosts, manyHosts] = [200, 2_000] as const;
const members = 10;
const hostsPerRack = 20;

/** Rows of fleet views that were read, by any caller. */
const visits = vi.spyOn(FleetRows.prototype, 'get');

interface Fleet {
  readonly rig: Rig;
  readonly pools: Pools;
  readonly replica: Replica;
  readonly counted: Counted;
}

/** A pool of hosts that run its image, among many idle ones that no pool selects. */
async function fleetOf(hosts: number): Promise<Fleet> {
  const rig = new Rig();
  for (let n = 1; n <= hosts; n += 1) putHost(rig, n);
  const spec = { hosts: { labels: { role: 'web' } }, image: image('A') };
  const pool = { name: 'pools/p', uid: 'p', spec };
  rig.put(poolKey(asPoolId('p')), wire.PoolRecordSchema, { pool });
  let counted: Counted | undefined;
  const replica = await rig.replica({
    wrapStore: (inner) => {
      counted = countedStore(inner);
      return counted.store;
    },
  });
  if (counted === undefined) throw new Error('the store was not wrapped');
  const pools = new Pools({
    ...{ ...replica.shared, hosts: replica.hosts },
    ...{ resyncIntervalMs: 86_400_000, retryDelayMs: 1_000 },
    resolve: async () => ({ kind: 'failed', type: 'registryUnreachable', message: 'away' }),
  });
  replica.shared.whenKilled(() => pools.stop());
  await rig.during(pools.start(), 5_000);
  await rig.advance(60_000);
  return { rig, pools, replica, counted };
}

function putHost(rig: Rig, n: number): void {
  const rackId = `r${1 + Math.floor(n / hostsPerRack)}`;
  if (rig.rack(rackId) === undefined) rig.addRack(rackId);
  const bmc = { address: `10.1.${n >> 8}.${n & 255}`, credential: 'credentials/c1' };
  const goal = HostGoal.MANAGEABLE;
  const record = newHost({ rack: `racks/${rackId}`, bmc, bootMacs: [], goal });
  const { host } = record;
  if (host?.spec === undefined || host.status === undefined) throw new Error('no host');
  Object.assign(host, { name: `hosts/h${n}`, uid: `u${n}` });
  host.status.state = HostState.MANAGEABLE;
  if (n <= members) {
    host.labels = { role: 'web' };
    host.spec.goal = HostGoal.AVAILABLE;
    Object.assign(host.status, {
      state: HostState.PROVISIONED,
      image: image('A'),
      poweredOn: true,
    });
  }
  for (const { key } of reservedValues(host.spec)) {
    rig.put(key, wire.ReservationSchema, { holder: host.name, holderUid: host.uid });
  }
  rig.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
}

let few: Fleet;
let many: Fleet;

beforeAll(async () => {
  few = await fleetOf(fewHosts);
  many = await fleetOf(manyHosts);
});

afterAll(() => {
  for (const { replica } of [few, many]) replica.kill();
  visits.mockRestore();
});

type Work = (fleet: Fleet) => Promise<unknown>;

async function costOf(fleet: Fleet, work: Work): Promise<Cost & { readonly visited: number }> {
  const { cost } = fleet.counted;
  const before = { ...cost };
  visits.mockClear();
  await work(fleet);
  return { ...costSince(before, cost), visited: visits.mock.calls.length };
}

const works: readonly (readonly [string, Work])[] = [
  ['a pass over a pool', ({ rig, pools }) => rig.during(pools.reconcile(asPoolId('p')), 1_000)],
  [
    'what follows a change of a member',
    async ({ rig }) => {
      const record = rig.record('h3');
      record.host = { ...record.host, labels: { role: 'web', note: 'seen' } } as typeof record.host;
      rig.put(storeKey('hosts', 'h3'), wire.HostRecordSchema, record);
      await rig.advance(1_000);
    },
  ],
  [
    'what follows a change of a host that no pool selects',
    async ({ rig }) => {
      rig.put(storeKey('hosts', 'h99'), wire.HostRecordSchema, {
        ...rig.record('h99'),
        retries: 7n,
      });
      await rig.advance(1_000);
    },
  ],
];

test.each(works)('%s costs the same with ten times the hosts', async (_, work) => {
  const [least, most] = [await costOf(few, work), await costOf(many, work)];
  expect(least.rows + least.visited, 'nothing was counted').toBeGreaterThan(0);
  expect(most).toEqual(least);
});

test('the pool holds its members, and reads each of them once in a pass', async () => {
  const pool = many.rig.read(poolKey(asPoolId('p')), wire.PoolRecordSchema);
  expect(pool?.members).toHaveLength(members);
  const { rows } = await costOf(many, ({ rig, pools }) =>
    rig.during(pools.reconcile(asPoolId('p')), 1_000),
  );
  expect(rows).toBeGreaterThanOrEqual(members);
  expect(rows).toBeLessThan(3 * members);
});

test('a pass that reads all hosts, or all rows, is seen', async () => {
  const reads: Work = ({ replica }) => replica.shared.store.list('hosts');
  const looks: Work = async ({ replica }) => [...replica.shared.fleetView.rows()];
  for (const work of [reads, looks]) {
    const [least, most] = [await costOf(few, work), await costOf(many, work)];
    expect(most.rows + most.visited).toBe((least.rows + least.visited) * (manyHosts / fewHosts));
  }
});
