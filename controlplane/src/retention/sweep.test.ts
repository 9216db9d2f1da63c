import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetView } from '../fleet-view/index.ts';
import { type RetentionDependencies, startRetentionSweep, sweepOnce } from './sweep.ts';

const dayMs = 86_400_000;
let nowMs: number;
let store: StateStore;
let timers: { delayMs: number; run: () => void }[];
let deps: RetentionDependencies;
let fleetView: FleetView;

beforeEach(async () => {
  nowMs = 1_000 * dayMs;
  timers = [];
  const clock: Clock = {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs, run) => {
      const timer = { delayMs, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((each) => each !== timer);
      };
    },
  };
  const random = nodeRandom();
  store = await openMemoryStore({ random, clock });
  fleetView = new FleetView({ store, clock: nodeClock(), log, retryDelayMs: 10 });
  await fleetView.start();
  deps = { store, clock, random, log, fleetView, resolvedDays: 400 };
});

afterEach(() => fleetView.stop());

async function put<D extends DescMessage>(key: string, schema: D, record: MessageInitShape<D>) {
  await store.put(key, toBinary(schema, create(schema, record)), 'absent');
}

const keys = async () => (await store.list('')).entries.map(({ key }) => key);
const resolved = (daysAgo: number, fencePending = false) => ({
  resource: { fencePending, resolution: { at: timestampFromMs(nowMs - daysAgo * dayMs) } },
});

test('abandoned resources go once they were resolved long ago and fence nothing', async () => {
  const schema = wire.AbandonedRecordSchema;
  await put('abandonedResources.old', schema, resolved(401));
  await put('abandonedResources.young', schema, resolved(399));
  await put('abandonedResources.fencing', schema, resolved(401, true));
  await put('abandonedResources.open', schema, { resource: {} });
  expect(await sweepOnce(deps)).toBe(1);
  expect(await keys()).toEqual([
    'abandonedResources.fencing',
    'abandonedResources.open',
    'abandonedResources.young',
  ]);
});

test('entries of what a pool deployed go once they are old and their pool is gone', async () => {
  const deployed = (poolUid: string, daysAgo: number) =>
    put(`deployments.${poolUid}.h${daysAgo}.1`, wire.DeploymentRecordSchema, {
      poolUid,
      endTime: timestampFromMs(nowMs - daysAgo * dayMs),
    });
  await put('pools.web', wire.PoolRecordSchema, { pool: { uid: 'here' } });
  for (const daysAgo of [399, 401]) {
    await deployed('here', daysAgo);
    await deployed('gone', daysAgo);
  }
  expect(await sweepOnce(deps)).toBe(1);
  expect(await keys()).toEqual([
    'deployments.gone.h399.1',
    'deployments.here.h399.1',
    'deployments.here.h401.1',
    'pools.web',
  ]);
});

test('old entries of a living pool become one for each digest, by two replicas', async () => {
  const schema = wire.DeploymentRecordSchema;
  const digest = 'sha256:aa';
  for (const [index, daysAgo] of [399, 401, 500, 600].entries()) {
    const endTime = timestampFromMs(nowMs - daysAgo * dayMs);
    const hostUid = index === 2 ? 'u2' : 'u1';
    const entry = { poolUid: 'here', hostUid, digest, version: '1', endTime };
    await put(`deployments.here.${hostUid}.${daysAgo}`, schema, entry);
  }
  await put('pools.web', wire.PoolRecordSchema, { pool: { uid: 'here' } });
  await put('hosts.a', wire.HostRecordSchema, { host: { uid: 'u1' } });
  const removed = await Promise.all([sweepOnce(deps), sweepOnce(deps)]);
  expect(removed.toSorted((a, b) => a - b)).toEqual([0, 3]);
  const left = ['deployments.here.aa.0', 'deployments.here.u1.399', 'hosts.a', 'pools.web'];
  expect(await keys()).toEqual(left);
  const many = async () => {
    const found = await store.get('deployments.here.aa.0');
    return found.kind === 'found' ? fromBinary(schema, found.value) : undefined;
  };
  expect(await many()).toMatchObject({ digest, version: '1', foldedHostUids: ['u1', 'u2'] });
  expect((await many())?.endTime).toEqual(timestampFromMs(nowMs - 401 * dayMs));
  await sweepOnce(deps);
  expect(await many(), 'u2 is gone').toMatchObject({ foldedHostUids: ['u1'], foldedGoneHosts: 1 });
  expect(await keys()).toEqual(left);
});

test('while a host cannot be read, no entry is merged: it may be that host’s', async () => {
  const endTime = timestampFromMs(nowMs - 500 * dayMs);
  const entry = { poolUid: 'here', hostUid: 'u1', digest: 'sha256:aa', endTime };
  await put('deployments.here.u1.1', wire.DeploymentRecordSchema, entry);
  await put('deployments.here.u1.2', wire.DeploymentRecordSchema, entry);
  await put('pools.web', wire.PoolRecordSchema, { pool: { uid: 'here' } });
  await store.put('hosts.a', Uint8Array.of(255), 'absent');
  expect(await sweepOnce(deps)).toBe(0);
  const found = await store.get('hosts.a');
  if (found.kind !== 'found') throw new Error('gone');
  await store.delete('hosts.a', found.revision);
  expect(await sweepOnce(deps)).toBe(2);
});

test('a sweep reads no host but where facts may have lost theirs', async () => {
  const reads: string[] = [];
  const watched = new Proxy(store, {
    get: (target, name) => {
      const own: unknown = Reflect.get(target, name);
      if (typeof own !== 'function') return own;
      return (...given: readonly unknown[]) => {
        if (name === 'list' || name === 'get') reads.push(`${name} ${String(given[0])}`);
        return Reflect.apply(own, target, given) as unknown;
      };
    },
  });
  for (let n = 0; n < 20; n += 1) {
    await put(`hosts.h${n}`, wire.HostRecordSchema, { host: { uid: `u${n}` } });
    await put(`facts.h${n}`, wire.HostFactsSchema, {});
  }
  await put('facts.gone', wire.HostFactsSchema, {});
  const entry = { poolUid: 'here', hostUid: 'u1', endTime: timestampFromMs(nowMs) };
  await put('deployments.here.u1.1', wire.DeploymentRecordSchema, entry);
  await put('pools.web', wire.PoolRecordSchema, { pool: { uid: 'here' } });
  await sweepOnce({ ...deps, store: watched });
  expect(reads.filter((read) => read.includes('hosts'))).toEqual(['get hosts.gone']);
});

test('facts go a day after their host, and never while it is there', async () => {
  await put('hosts.a', wire.HostRecordSchema, {});
  await put('facts.a', wire.HostFactsSchema, {});
  await put('facts.gone', wire.HostFactsSchema, {});
  expect(await sweepOnce(deps)).toBe(0);
  nowMs += 2 * dayMs;
  await put('facts.new', wire.HostFactsSchema, {});
  expect(await sweepOnce(deps)).toBe(1);
  expect(await keys()).toEqual(['facts.a', 'facts.new', 'hosts.a']);
});

test('a sweep comes again each hour until it is ended', async () => {
  const end = startRetentionSweep(deps);
  for (const delayMs of [60_000, 3_600_000, 3_600_000]) {
    await expect.poll(() => timers.map((timer) => timer.delayMs)).toEqual([delayMs]);
    timers.shift()?.run();
  }
  await expect.poll(() => timers).toHaveLength(1);
  end();
  expect(timers).toEqual([]);
});
