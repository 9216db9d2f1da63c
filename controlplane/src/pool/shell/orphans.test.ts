/** Claims that exist, or appear, when their pool is deleted. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  asPoolId,
  ClaimSchema,
  type HostId,
  HostState,
  PoolSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { Rig } from '../../host/testing/rig.ts';
import { reference } from '../decide/rollout.fixture.ts';
import { poolKey } from '../policy/names.ts';
import { Pools } from './loop.ts';
import type { PoolHosts } from './slot-run.ts';

/** Three available hosts with this claim. */
function rigWith(claimedBy = ''): Rig {
  const rig = new Rig();
  rig.addRack();
  for (const n of [1, 2, 3]) {
    rig.addHost(n);
    const record = rig.record(`h${n}`);
    const claim = claimedBy === '' ? {} : { claim: create(ClaimSchema, { by: claimedBy }) };
    const { host } = record;
    Object.assign(host?.status ?? {}, { state: HostState.AVAILABLE, dirty: false, ...claim });
    if (host?.spec?.bmc !== undefined) record.verifiedBmc = host.spec.bmc;
    rig.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
  }
  return rig;
}

const claims = (rig: Rig) => [1, 2, 3].map((n) => rig.status(`h${n}`).claim?.by ?? '').join();

/** A replica that sends requests like this. */
async function start(rig: Rig, id: string, asks: (hosts: PoolHosts) => PoolHosts = (own) => own) {
  const { hosts, shared } = await rig.replica({ id });
  const resolve = async () =>
    ({ kind: 'failed', type: 'registryUnreachable', message: 'away' }) as const;
  const times = { resyncIntervalMs: 60_000, retryDelayMs: 1_000 };
  const pools = new Pools({ ...shared, ...times, hosts: asks(hosts), resolve });
  await rig.during(pools.start(), 10);
}

test('a claim of a pool that is gone is ended by whoever starts; a person’s stays', async () => {
  for (const [by, left] of [
    ['pools/gone', ',,'],
    ['user:ann', 'user:ann,user:ann,user:ann'],
  ]) {
    const rig = rigWith(by);
    await start(rig, 'a');
    await rig.advance(1_000);
    expect(claims(rig)).toBe(left);
  }
});

test('the timeline of its host says who has ended a claim, and why', async () => {
  const rig = rigWith('pools/gone');
  await start(rig, 'a');
  await rig.advance(1_000);
  const { actor, cause = '' } = rig.record().change ?? {};
  expect(actor).toBe('system');
  expect(cause).toContain('pools/gone is gone');
});

test('a claim that lands after another replica has taken its pool away is ended', async () => {
  const rig = rigWith();
  const isSlow = (hostId: HostId, kind: string) => kind === 'claim' && hostId === 'h3';
  const wait = () => new Promise<void>((resolve) => rig.clock.after(2_000, () => resolve()));
  await start(rig, 'slow', (hosts) => ({
    request: async (hostId, request, by, revision) => {
      if (isSlow(hostId, request.kind)) await wait();
      return hosts.request(hostId, request, by, revision);
    },
  }));
  const spec = { hosts: { rack: 'racks/r1' }, image: reference };
  const pool = create(PoolSchema, { name: 'pools/p', uid: 'p', spec });
  rig.put(poolKey(asPoolId('p')), wire.PoolRecordSchema, { pool });
  await rig.advance(500);
  const changed = { kind: 'refused', code: 'aborted', message: 'changed' } as const;
  await start(rig, 'fast', (hosts) => ({
    request: async (hostId, request, by, revision) =>
      isSlow(hostId, request.kind) ? changed : hosts.request(hostId, request, by, revision),
  }));
  await rig.advance(200);
  const kept = rig.read(poolKey(asPoolId('p')), wire.PoolRecordSchema);
  if (kept === undefined) throw new Error('the pool is there');
  const deletion = create(AbortSchema, { by: 'user:ann', at: timestampFromMs(0) });
  rig.put(poolKey(asPoolId('p')), wire.PoolRecordSchema, { ...kept, deletion });
  await rig.advance(10_000);
  expect(rig.read(poolKey(asPoolId('p')), wire.PoolRecordSchema)).toBeUndefined();
  expect(claims(rig)).toBe(',,');
});
