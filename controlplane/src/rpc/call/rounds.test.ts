import { expect, test } from 'vitest';
import { untilWritten } from './rounds.ts';

test('a change that was slower than another one is made anew', async () => {
  const ends = [undefined, undefined, 'written'];
  await expect(untilWritten('racks/r1', async () => ends.shift())).resolves.toBe('written');
});

test('a change that is always slower is given up, and says so', async () => {
  let rounds = 0;
  const trying = untilWritten('racks/r1', async () => {
    rounds += 1;
    return undefined;
  });
  await expect(trying).rejects.toThrow('racks/r1 changes all the time; try again.');
  expect(rounds).toBe(16);
});
