import { expect, test } from 'vitest';
import { SortedKeys } from './sorted-keys.ts';

/** As the contract defines it: by whole segments, in the order of code units. */
function wanted(keys: ReadonlySet<string>, prefix: string, after: string, limit: number) {
  const under = (key: string) => prefix === '' || key === prefix || key.startsWith(`${prefix}.`);
  const found = [...keys].filter((key) => key > after && under(key)).sort();
  return found.slice(0, limit);
}

test('after any additions and deletions it tells what a sorted set tells', () => {
  const [sorted, keys] = [new SortedKeys(), new Set<string>()];
  const ids = Array.from({ length: 200 }, (_, at) => (at * 73) % 200);
  const all = ids.flatMap((id) => [`hosts.h${id}`, `hosts.h${id}.w`, `hosts.h${id}-b`]);
  all.push('hosts', 'hosts-x', 'hostsx.a', 'a', 'z.z');
  let chance = 1;
  for (let round = 0; round < 60; round += 1) {
    for (let each = 0; each < (round % 7 === 0 ? 150 : 9); each += 1) {
      chance = (chance * 16_807) % 2_147_483_647;
      const key = all[chance % all.length] ?? '';
      if (chance % 5 < (round > 40 ? 1 : 3)) {
        sorted.add(key);
        keys.add(key);
      } else {
        sorted.delete(key);
        keys.delete(key);
      }
    }
    expect(sorted.size).toBe(keys.size);
    for (const prefix of ['', 'hosts', 'hosts.h1', 'nothing']) {
      for (const after of ['', 'hosts', 'hosts.h1', 'hosts.h150-b', 'zz']) {
        for (const limit of [1, 7, 1_000]) {
          const said = `round ${round}: ${limit} under "${prefix}" behind "${after}"`;
          expect(sorted.under(prefix, after, limit), said).toEqual(
            wanted(keys, prefix, after, limit),
          );
        }
      }
    }
  }
});
