import { expect, test } from 'vitest';
import { roundedDurationText, TransferPace } from './pace.ts';

function paced(totalBytes: number) {
  const clock = { nowMs: 1_000 };
  const pace = new TransferPace({ suspendAwareMs: () => clock.nowMs }, totalBytes);
  return { clock, pace };
}

test('speed is reported after two seconds, and counted from the first transfer', () => {
  const { clock, pace } = paced(10_000_000);
  clock.nowMs = 50_000;
  pace.add(1_000_000);
  expect(pace.text()).toBe('');
  clock.nowMs += 1_999;
  expect(pace.text()).toBe('');
  clock.nowMs += 1;
  expect(pace.text()).toBe('500 kB/s, 18 s left');
  expect(pace.bytes).toBe(1_000_000);
});

test('no speed is reported before the first byte', () => {
  const { clock, pace } = paced(10);
  pace.add(0);
  clock.nowMs += 10_000;
  expect(pace.text()).toBe('');
});

test('very slow devices have a speed, and fast ones are shown in MB/s', () => {
  const slow = paced(1_000);
  slow.pace.add(10);
  slow.clock.nowMs += 100_000;
  expect(slow.pace.text()).toBe('1 kB/s, 2 h 45 min left');
  const fast = paced(4_000_000);
  fast.pace.add(2_000_000);
  fast.clock.nowMs += 2_000;
  expect(fast.pace.text()).toBe('1 MB/s, 2 s left');
});

test('progress beyond the plan counts as 100 %, and an empty plan takes no time', () => {
  const { clock, pace } = paced(1_000);
  expect(pace.fraction).toBe(0);
  pace.add(1_500);
  clock.nowMs += 2_000;
  expect(pace.fraction).toBe(1);
  expect(pace.text()).toBe('1 kB/s, 0 s left');
  expect(paced(0).pace.fraction).toBe(1);
});

test.each([
  [0, '0 s'],
  [59_000, '59 s'],
  [59_001, '1 min'],
  [3_540_000, '59 min'],
  [3_540_001, '1 h'],
  [7_320_000, '2 h 2 min'],
])('%d ms are told as %s', (ms, text) => {
  expect(roundedDurationText(ms)).toBe(text);
});
