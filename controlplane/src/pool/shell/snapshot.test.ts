/** What a decision about one pool knows of the other pools. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AbortSchema, asPoolId, PoolSchema, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Rig } from '../../host/testing/rig.ts';
import { reference } from '../decide/rollout.fixture.ts';
import { poolKey } from '../policy/names.ts';
import { readSnapshot } from './snapshot.ts';

test('other pools count, but not the pool itself, nor those that are to go', async () => {
  const rig = new Rig();
  rig.addRack();
  const { shared } = await rig.replica({ id: 'a' });
  const deletion = create(AbortSchema, { by: 'user:ann', at: timestampFromMs(0) });
  for (const [id, more] of [
    ['own', {}],
    ['other', {}],
    ['going', { deletion }],
  ] as const) {
    const spec = { hosts: { rack: 'racks/r1' }, image: reference };
    const pool = create(PoolSchema, { name: `pools/${id}`, uid: id, spec });
    rig.put(poolKey(asPoolId(id)), wire.PoolRecordSchema, { pool, ...more });
  }
  const own = rig.read(poolKey(asPoolId('own')), wire.PoolRecordSchema);
  if (own === undefined) throw new Error('the pool is there');
  const { others } = await rig.during(readSnapshot(shared, own, rig.clock.nowMs()), 10);
  expect(others.map(({ name }) => name)).toEqual(['pools/other']);
});
