/** A halt that is lifted by a host that leaves is found; one that comes back lifts it. */
import { create } from '@bufbuild/protobuf';
import { store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { HaltRule } from './halts.ts';
import { digestOfImage, imageReferenceOf } from './registry.ts';

const image = imageReferenceOf('b');
const digest = digestOfImage('b');

function recordOf(members: readonly number[], failed: readonly number[]): store.PoolRecord {
  const named = (host: number) => ({ host: `hosts/h${host}`, hostUid: `u${host}` });
  const slots = [{ ...named(9), image }];
  return create(store.PoolRecordSchema, {
    pool: { name: 'pools/p1', uid: 'p', status: { target: { image, digest }, slots } },
    members: members.map(named),
    failures: failed.map((host) => ({ ...named(host), digest, counted: true })),
  });
}

test.each([
  ['nobody left, nobody came back', [1, 2, 9], [1, 2], ['P7']],
  ['one has left', [2, 9], [2], ['P7']],
  ['one has come back', [1, 2, 9], [2], []],
])('P7: a host is taken after two failed and %s', (_, members, failed, expected) => {
  const found: string[] = [];
  const rule = new HaltRule((name) => found.push(name));
  const [before, after] = [recordOf([1, 2, 9], [1, 2]), recordOf(members, failed)];
  rule.written(undefined, before, 2);
  rule.written(before, after, 2);
  rule.judge(after, after.pool?.status?.slots ?? []);
  expect(found).toEqual(expected);
});
