import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { PoolSchema, type PoolStatusSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { exitCodeOf } from '../../failure-text.ts';
import { isCurrent } from './watch.ts';

const image = `registry.example/os@sha256:${'a'.repeat(64)}`;
const upToDate = { type: 'UpToDate', status: true, reason: 'AllUpdated' };
const bad = `sha256:${'b'.repeat(64)}`;

function isReached(status: MessageInitShape<typeof PoolStatusSchema>): boolean {
  return isCurrent(create(PoolSchema, { name: 'pools/web', status }));
}

function failureOf(status: MessageInitShape<typeof PoolStatusSchema>) {
  try {
    return isReached(status);
  } catch (error) {
    return { code: exitCodeOf(error), text: (error as Error).message };
  }
}

test('a watch ends well when the hosts are on the image, and only then', () => {
  expect(isReached({ conditions: [upToDate] })).toBe(true);
  const waits = { type: 'UpToDate', reason: 'NoTarget', message: 'os:2 is not resolved' };
  // It went back once, and another image is looked up now.
  expect(isReached({ conditions: [waits], rolledBackFrom: bad })).toBe(false);
  expect(isReached({})).toBe(false);
});

test('a watch ends with 13 where the pool went back, or the rollout is halted', () => {
  const back = { conditions: [upToDate], rolledBackFrom: bad, target: { image } };
  expect(failureOf(back)).toEqual({
    code: 13,
    text: expect.stringContaining(`on ${image}: the pool went back from ${bad}`),
  });
  const halted = { type: 'UpToDate', reason: 'Halted', message: '1 of 4; 2 hosts failed' };
  expect(failureOf({ conditions: [halted] })).toEqual({
    code: 13,
    text: 'pools/web: 1 of 4; 2 hosts failed',
  });
});
