/** Orders sort as written, and are refused with a position. */
import { HostStateSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { FilterError, type FilterFields, parseOrder } from './index.ts';

interface Thing {
  readonly id: number;
  readonly rack: string;
  readonly state: number;
  readonly on?: boolean;
}

const fields: FilterFields<Thing> = {
  rack: { kind: 'text', of: ({ rack }) => rack },
  state: { kind: 'choice', of: ({ state }) => state, choices: HostStateSchema },
  on: { kind: 'flag', of: ({ on }) => on },
  labels: { kind: 'map', of: ({ rack }) => ({ rack }) },
};

const things: readonly Thing[] = [
  { id: 1, rack: 'b', state: 3, on: true },
  { id: 2, rack: 'a', state: 3 },
  { id: 3, rack: '', state: 1, on: false },
  { id: 4, rack: 'a', state: 0 },
];

test.each([
  ['state', [4, 3, 1, 2]],
  ['state desc', [1, 2, 3, 4]],
  ['rack, state', [3, 4, 2, 1]],
  [' rack desc ,state  desc', [1, 2, 4, 3]],
  ['on asc', [2, 4, 3, 1]],
  ['labels.rack', [3, 2, 4, 1]],
])('%j sorts as it says', (text, ids) => {
  const order = parseOrder(text, fields);
  if (order === undefined) throw new Error('no order');
  const { compare, keyOf } = order;
  const sorted = things.toSorted((a, b) => compare(keyOf(a), keyOf(b)) || a.id - b.id);
  expect(sorted.map(({ id }) => id)).toEqual(ids);
});

test('the empty order is none', () => expect(parseOrder(' ', fields)).toBeUndefined());

test.each([
  ['stat', 1, 'no field stat'],
  ['state,', 7, 'a field'],
  ['state descending', 7, 'a comma'],
  ['labels', 1, 'more than one value'],
  ['state, rack, on, state, rack', 25, 'at most 4'],
])('%j is refused at character %i', (text, position, what) => {
  expect(() => parseOrder(text, fields)).toThrow(FilterError);
  try {
    parseOrder(text, fields);
  } catch (error) {
    expect(error).toMatchObject({ position, message: expect.stringContaining(what) });
  }
});
