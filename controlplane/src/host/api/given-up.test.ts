import { create } from '@bufbuild/protobuf';
import { HostSchema, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { MemoryDisk, openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { writeRecord } from '../../records/index.ts';
import { hasPoolGivenUp } from './given-up.ts';

test.each([
  ['pools/web', 'u1', 'aa.bb', true],
  ['pools/web', 'u1', '', false],
  ['pools/web', 'u2', 'aa.bb', false],
  ['pools/other', 'u1', 'aa.bb', false],
  ['user:ann', 'u1', 'aa.bb', false],
])(
  'a host claimed by %s, with a failure of %s on the basis "%s", is given up: %s',
  async (by, hostUid, basis, isGivenUp) => {
    const store = await openMemoryStore({ random: nodeRandom(), disk: new MemoryDisk() });
    const failures = [{ host: 'hosts/h1', hostUid, basis, counted: true }];
    const record = create(wire.PoolRecordSchema, { failures });
    await writeRecord({ store }, wire.PoolRecordSchema, storeKey('pools', 'web'), record, 'absent');
    const host = create(HostSchema, { uid: 'u1', status: { claim: { by } } });
    expect(await hasPoolGivenUp(store, host)).toBe(isGivenUp);
  },
);
