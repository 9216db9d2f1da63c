import { create } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { seen } from '../decide/rollout.fixture.ts';
import { wantedOf } from './asking.ts';

const pool = 'pools/p';
const record = create(wire.PoolRecordSchema, {
  pool: { name: pool, spec: { hosts: { names: ['hosts/h1'] } } },
});

test('a pool claims its members, and gives up who is none any more', () => {
  const of = (claimedBy: string | undefined, isMember: boolean, n = 1) =>
    wantedOf(record, seen(n, { claimedBy }), isMember)?.kind;
  expect(of(undefined, true)).toBe('claim');
  expect(of(undefined, true, 2), 'it stays for its run alone').toBeUndefined();
  expect(of(pool, true)).toBeUndefined();
  expect(of('user:ann', true)).toBeUndefined();
  expect(of(pool, false)).toBe('unclaim');
  expect(of('user:ann', false)).toBeUndefined();
  expect(of(undefined, false)).toBeUndefined();
});
