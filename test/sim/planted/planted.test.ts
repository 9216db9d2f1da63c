/**
 * The table fits the code as it is; that each fault is noticed, `npm run sim -- --planted` shows.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withDefect } from './plant.ts';
import { plants } from './table.ts';

const root = new URL('../../../', import.meta.url);

test.each(plants)('the search finds the place of the planted fault $name exactly once', (plant) => {
  const text = readFileSync(new URL(plant.file, root), 'utf8');
  expect(withDefect(text, plant)).not.toBe(text);
});

test('the table names tests that there are', () => {
  for (const { name, caughtBy } of plants) {
    if (caughtBy.kind !== 'test') continue;
    const text = readFileSync(new URL(caughtBy.file, root), 'utf8');
    expect(text, `${name}: ${caughtBy.file}`).toMatch(new RegExp(caughtBy.name));
  }
});

test('the search refuses a planted fault whose place is missing or not unique', () => {
  const plant = { ...plants[0], find: 'a', replace: 'b', name: 'x', file: 'x.ts' } as never;
  expect(() => withDefect('aba', plant)).toThrow('2 times');
  expect(() => withDefect('', plant)).toThrow('0 times');
  expect(withDefect('one a', plant)).toBe('one b');
});

test('each planted fault has a name of its own', () => {
  expect(new Set(plants.map(({ name }) => name)).size).toBe(plants.length);
});
