import { expect, test } from 'vitest';
import { randomId } from '../random.ts';
import { nodeRandom } from './random.ts';

test('the generator gives as many bytes as asked for, and others each time', () => {
  const random = nodeRandom();
  expect(random.bytes(0)).toHaveLength(0);
  expect(random.bytes(33)).toHaveLength(33);
  expect(random.bytes(32)).not.toEqual(random.bytes(32));
});

test('the generator gives fractions in [0, 1) from both halves', () => {
  const random = nodeRandom();
  const fractions = Array.from({ length: 1_000 }, () => random.fraction());
  expect(fractions.every((fraction) => fraction >= 0 && fraction < 1)).toBe(true);
  const low = fractions.filter((fraction) => fraction < 0.5).length;
  expect(low).toBeGreaterThan(350);
  expect(low).toBeLessThan(650);
});

test('the generator makes identifiers of 32 lower-case hex digits', () => {
  expect(randomId(nodeRandom())).toMatch(/^[0-9a-f]{32}$/);
});
