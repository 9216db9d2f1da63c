import { expect, test } from 'vitest';
import { VirtualClock } from './conformance/virtual-clock.ts';
import { type BmcFailureType, type BmcResult, failed, ok, transient } from './driver.ts';
import { watchRestart } from './restart.ts';

const timings = { beginsWithinMs: 10_000, backWithinMs: 60_000, pollMs: 1_000 };
const silence = transient('unreachable', 'nothing');

/** A BMC that answers so, one after the other; the last one stays. */
async function watched(...answers: readonly BmcResult<string>[]) {
  const clock = new VirtualClock();
  const left = [...answers];
  const next = async () => (left.length > 1 ? left.shift() : left[0]) ?? silence;
  const result = await clock.settle(watchRestart('', next, clock, timings, undefined));
  return { result, tookMs: clock.nowMs() };
}

test.each<BmcFailureType>(['protocol', 'malformed', 'unsupported', 'rejected'])(
  'a BMC that answers "%s" while it starts is waited for',
  async (type) => {
    const { result } = await watched(silence, failed(type, 'starting'), ok(''));
    expect(result).toMatchObject({ kind: 'ok', value: { changed: true } });
  },
);

test('a BMC that never answers better gives its last answer', async () => {
  const { result, tookMs } = await watched(silence, failed('protocol', 'a page'));
  expect(result).toMatchObject({ kind: 'failed', type: 'protocol' });
  expect(tookMs).toBeGreaterThan(timings.backWithinMs);
});

test.each<BmcFailureType>(['authentication', 'certificate'])(
  'a BMC that answers "%s" after its restart is not waited for',
  async (type) => {
    const { result, tookMs } = await watched(silence, failed(type, 'no'));
    expect(result).toMatchObject({ kind: 'failed', type });
    expect(tookMs).toBeLessThan(5_000);
  },
);
