import { create } from '@bufbuild/protobuf';
import { type Actor, readActor, userActor, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { seen } from '../decide/rollout.fixture.ts';
import { wantedOf } from './asking.ts';

const pool = readActor('pools/p');
const record = create(wire.PoolRecordSchema, {
  pool: { name: pool, spec: { hosts: { names: ['hosts/h1'] } } },
});

test('a pool claims its members, and gives up who is none any more', () => {
  const of = (claimedBy: Actor | undefined, isMember: boolean, n = 1) =>
    wantedOf(record, seen(n, { claimedBy }), isMember)?.kind;
  expect(of(undefined, true)).toBe('claim');
  expect(of(undefined, true, 2), 'it stays for its run alone').toBeUndefined();
  expect(of(pool, true)).toBeUndefined();
  expect(of(userActor('ann'), true)).toBeUndefined();
  expect(of(pool, false)).toBe('unclaim');
  expect(of(userActor('ann'), false)).toBeUndefined();
  expect(of(undefined, false)).toBeUndefined();
});
