/** What a pool stores of a host's failed attempt, by the digest that was tried. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  PoolStatusSchema,
  RolloutSlotSchema,
  RolloutSlotState,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { PoolDraft } from '../facts/draft-types.ts';
import { fail } from './failures.ts';
import { digest, image, seen } from './rollout.fixture.ts';

const nowMs = Date.UTC(2026, 0, 1);
const minuteMs = 60_000;

/** After `before` attempts with A and then one with the image of a letter. */
function failedOnce(before: number, letter: string): wire.PoolFailure | undefined {
  const record = create(wire.PoolRecordSchema, { pool: { name: 'pools/p', uid: 'p' } });
  const host = seen(1);
  const draft: PoolDraft = {
    ...{ record, status: create(PoolStatusSchema), nowMs, registries: [], deployments: [] },
    hosts: new Map([[host.uid, host]]),
  };
  const failOn = (tried: string) => {
    const slot = create(RolloutSlotSchema, {
      ...{
        host: host.name,
        hostUid: host.uid,
        image: image(tried),
        number: 1n,
        run: asRunNumber(1),
      },
      state: RolloutSlotState.RUNNING,
    });
    fail(draft, slot, { message: 'no', counted: false });
  };
  for (let count = 0; count < before; count += 1) failOn('A');
  failOn(letter);
  expect(record.failures).toHaveLength(1);
  return record.failures[0];
}

const pauseMinutes = (failure: wire.PoolFailure | undefined): number => {
  const time = failure?.retryTime;
  return time === undefined ? 0 : (timestampMs(time) - nowMs) / minuteMs;
};

test('the tries on one digest are counted, and their pauses double', () => {
  const third = failedOnce(2, 'A');
  expect(third).toMatchObject({ digest: digest('A'), attempts: 3 });
  expect(pauseMinutes(third)).toBe(20);
});

test('the first try on another digest is the first one, with the first pause', () => {
  const first = failedOnce(2, 'B');
  expect(first).toMatchObject({ digest: digest('B'), attempts: 1 });
  expect(pauseMinutes(first)).toBe(5);
});
