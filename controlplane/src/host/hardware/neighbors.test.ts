import { create, toBinary } from '@bufbuild/protobuf';
import { type Inventory, InventorySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { withEarlierNeighbors } from './neighbors.ts';

const leaf = { systemName: 'leaf-1', portId: '1' };
const spine = { systemName: 'spine', portId: '2' };
const bytesMax = 100_000;

/** One interface, with its MAC in any case, with these neighbors. */
function heard(mac: string, neighbors: readonly object[], listenedSeconds: number): Inventory {
  const interfaces = [{ mac, neighbors: [...neighbors], listenedSeconds }];
  return create(InventorySchema, { interfaces });
}

const namesOf = ({ interfaces }: Inventory) =>
  interfaces.flatMap(({ neighbors }) => neighbors.map(({ systemName }) => systemName));

test('a neighbour stays until another is heard, or nobody for long enough', () => {
  const before = heard('aa:00', [leaf], 10);
  const kept = (now: Inventory) => namesOf(withEarlierNeighbors(before, now, bytesMax));
  expect(kept(heard('AA:00', [], 0))).toEqual(['leaf-1']);
  expect(kept(heard('aa:00', [], 34))).toEqual(['leaf-1']);
  expect(kept(heard('aa:00', [], 35))).toEqual([]);
  expect(kept(heard('aa:00', [spine], 1))).toEqual(['spine']);
  expect(kept(heard('bb:00', [], 1))).toEqual([]);
});

test('an inventory that would grow beyond its bound stays as it was told', () => {
  const now = heard('aa:00', [], 5);
  const { length } = toBinary(InventorySchema, now);
  expect(withEarlierNeighbors(heard('aa:00', [leaf], 5), now, length)).toBe(now);
  expect(withEarlierNeighbors(undefined, now, length)).toBe(now);
});
