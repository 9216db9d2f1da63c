import { expect, test } from 'vitest';
import type { Progress } from './executor.ts';
import { progressPaceMs, throttle } from './progress-pace.ts';
import { TestClock } from './testing/clock.ts';

const step = 'deploy.fetch_image';
const queued = (queuePlace: number): Progress => ({ step, text: `${queuePlace}.`, queuePlace });
const fetched = (percent: number): Progress => ({ step, text: 'fetches', percent });

function setUp() {
  const time = new TestClock();
  const told: Progress[] = [];
  const tell = throttle(time.open().clock, (progress) => void told.push(progress));
  return { time, told, tell };
}

test('the latest progress is reported at intervals, and the last one at the end', async () => {
  const { time, told, tell } = setUp();
  for (let place = 1_000; place > 0; place -= 1) tell(queued(place));
  expect(told).toEqual([queued(1_000)]);
  await time.run(progressPaceMs);
  expect(told).toEqual([queued(1_000), queued(1)]);
  await time.run(progressPaceMs);
  tell(queued(7));
  expect(told).toEqual([queued(1_000), queued(1), queued(7)]);
});

test('a new slot and a beginning are reported at once', async () => {
  const { time, told, tell } = setUp();
  const begun: Progress = { ...fetched(100), begun: true };
  for (const each of [queued(2), queued(1), fetched(0), fetched(50), begun]) tell(each);
  expect(told).toEqual([queued(2), fetched(0), begun]);
  await time.run(10 * progressPaceMs);
  expect(told).toHaveLength(3);
});
