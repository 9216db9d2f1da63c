import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { store as wire } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { type RetentionDependencies, startRetentionSweep, sweepOnce } from './sweep.ts';

const dayMs = 86_400_000;
let nowMs: number;
let store: StateStore;
let timers: { delayMs: number; run: () => void }[];
let deps: RetentionDependencies;

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
  const quiet = () => undefined;
  const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => log };
  const random = nodeRandom();
  store = await openMemoryStore({ random, clock });
  deps = { store, clock, random, log, resolvedDays: 400 };
});

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

test('of what pools deployed, that goes which is old and of a pool that is gone', async () => {
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

test('it comes again each hour until it is ended', async () => {
  const end = startRetentionSweep(deps);
  for (const delayMs of [60_000, 3_600_000, 3_600_000]) {
    expect(timers.map((timer) => timer.delayMs)).toEqual([delayMs]);
    timers.shift()?.run();
    for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
  }
  end();
  expect(timers).toEqual([]);
});
