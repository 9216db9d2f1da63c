/** A rack whose agent is away: its hosts cannot be worked on, and take no slot from the others. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { asPoolId, HostState, poolCondition, store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { Rig } from '../../host/testing/rig.ts';
import { fetching, poolOf, reconcile, runOf, write } from '../decide/call-off.fixture.ts';
import { digest, image, Rollout, reference } from '../decide/rollout.fixture.ts';
import { poolKey } from '../policy/names.ts';
import { Pools } from './loop.ts';
import { snapshotOf } from './snapshot.fixture.ts';

const away = 'the agent of racks/r2 is away since 2026-11-22T11:00:00Z';
const brake = { kind: 'agentAway', text: away, sinceMs: 0 } as const;
const oneAtOnce = { maxUnavailable: { amount: { case: 'count', value: 1 } } } as const;
const minuteMs = 60_000;

/** Two racks with a host each; `r2` is the store's record of the second one's agent. */
function rigOf(r2: (nowMs: number) => object, at = new Rig()): Rig {
  for (const [index, rackId] of ['r1', 'r2'].entries()) {
    at.addRack(rackId);
    at.addHost(index + 1, { rack: `racks/${rackId}` });
  }
  const seenTime = timestampFromMs(at.clock.nowMs());
  const rack = { name: 'racks/r1', status: { lastSeenTime: seenTime } };
  const there = { sessionReplica: 'a', sessionTime: seenTime };
  at.put(storeKey('racks', 'r1'), wire.RackRecordSchema, { rack, ...there });
  at.put(storeKey('racks', 'r2'), wire.RackRecordSchema, r2(at.clock.nowMs()));
  return at;
}

const left = (agoMs: number) => (nowMs: number) => ({
  rack: { name: 'racks/r2', status: { lastSeenTime: timestampFromMs(nowMs - agoMs) } },
});
const silent = (agoMs: number) => (nowMs: number) => ({
  rack: { name: 'racks/r2' },
  ...{ sessionReplica: 'a', sessionTime: timestampFromMs(nowMs - agoMs) },
});

test.each([
  ['its session ended a while ago', left(10 * minuteMs), true],
  ['its session ended just now', left(10_000), false],
  ['its replica was killed with it', silent(10 * minuteMs), true],
  ['its replica said so a minute ago', silent(minuteMs), false],
  ['it has never been there', () => ({ rack: { name: 'racks/r2' } }), false],
])('hosts are kept by their rack’s agent: %s', async (_what, r2, isAway) => {
  const rig = rigOf(r2);
  const store = await openMemoryStore({ random: seededRandom(1), disk: rig.disk });
  const { hosts } = await snapshotOf(store, ['hosts/h1', 'hosts/h2'], rig.clock.nowMs());
  const text = expect.stringContaining('the agent of racks/r2 is away since');
  expect(hosts.map(({ keptBy }) => keptBy?.text)).toEqual([undefined, isAway ? text : undefined]);
});

test('the only slot goes to a host that can be worked on; people are told of the others', () => {
  const pool = new Rollout(4, { rollout: oneAtOnce }).push('A');
  for (const n of [1, 3]) pool.set(n, { keptBy: { kind: 'brake', text: away }, brake });
  pool.push('B').finish();
  expect(pool.countOn('B')).toBe(2);
  expect(pool.condition('Degraded')).toBe('HostKept');
  expect(pool.messageOf('Degraded')).toContain(away);
});

test('a host that was let through before its agent went gives its slot back at once', async () => {
  const host = fetching();
  const kept = poolOf(host);
  const first = await reconcile(host, kept, host.nowMs, [], brake);
  expect(first.asked).toEqual(['abort']);
  expect(runOf(host)?.abort).toMatchObject({ by: 'pools/p', reason: away });
  const second = await reconcile(host, first.record, host.nowMs, [], brake);
  expect(second.record.pool?.status?.slots).toEqual([]);
  expect(second.record.failures).toEqual([]);
});

test('a host that is being written keeps its slot, and people are told', async () => {
  const host = fetching();
  const kept = poolOf(host);
  write(host);
  const { record, asked } = await reconcile(host, kept, host.nowMs, [], brake);
  expect(asked).toEqual([]);
  expect(record.pool?.status?.slots).toHaveLength(1);
  const degraded = poolCondition(record.pool?.status, 'Degraded');
  expect(degraded).toMatchObject({ status: true, reason: 'HostKept' });
  expect(degraded?.message).toContain(away);
});

test('the pool goes on as soon as the agent is back', async () => {
  const rig = rigOf(left(10 * minuteMs));
  for (const n of [1, 2]) {
    const record = rig.record(`h${n}`);
    if (record.host?.status === undefined || record.host.spec?.bmc === undefined) throw new Error();
    Object.assign(record.host.status, { state: HostState.AVAILABLE, dirty: false });
    record.verifiedBmc = record.host.spec.bmc;
    rig.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
  }
  const pool = {
    name: 'pools/p',
    uid: 'p',
    spec: { hosts: { names: ['hosts/h2'] }, image: reference, rollout: oneAtOnce },
  };
  rig.put(poolKey(asPoolId('p')), wire.PoolRecordSchema, { pool });
  const replica = await rig.replica();
  const pools = new Pools({
    ...{ ...replica.shared, hosts: replica.hosts },
    ...{ resyncIntervalMs: 3_600_000, retryDelayMs: 1_000 },
    resolve: async () => ({ kind: 'digest', digest: digest('B'), version: '' }),
  });
  await rig.during(pools.start(), 1_000);
  await rig.advance(5_000);
  const slots = () =>
    rig.read(poolKey(asPoolId('p')), wire.PoolRecordSchema)?.pool?.status?.slots ?? [];
  expect(slots()).toEqual([]);
  rig.put(storeKey('racks', 'r2'), wire.RackRecordSchema, silent(0)(rig.clock.nowMs()));
  await rig.advance(5_000);
  expect(slots()).toMatchObject([{ host: 'hosts/h2', image: image('B') }]);
  pools.stop();
});
