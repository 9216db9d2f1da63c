import { expect, test, vi } from 'vitest';
import { WaitingKeys } from './waiting-keys.ts';

const all = ['hosts', 'hosts.a', 'hosts.b', 'hosts-old.a', 'racks.r.x', 'racks.r.y', 'racks.s'];
const bounds = ['', 'hosts', 'hosts.', 'hosts.a', 'racks.', 'racks.r.', 'racks.r.x', 'zzz.'];
const ends = ['hosts/', 'racks/', 'racks.r/', '\u007f'];

test('keys between two are found, whatever was added and taken before', () => {
  const keys = new WaitingKeys();
  const model = new Set<string>();
  for (let round = 0; round < 42; round += 1) {
    const key = all[(round * 7 + (round >> 2)) % all.length] ?? '';
    if (round % 3 === 0) {
      keys.delete(key);
      model.delete(key);
    } else {
      keys.set(key, { revision: round, added: 1 });
      model.add(key);
    }
    for (const after of bounds) {
      for (const end of ends) {
        const wanted = [...model].filter((each) => each > after && each < end).sort();
        expect(keys.between(after, end).sort(), `${after} ${end}`).toEqual(wanted);
        expect(keys.inOrder().between(after, end)).toEqual(wanted);
      }
    }
  }
  expect([...keys.inOrder().keys()]).toEqual([...model].sort());
  keys.clear();
  expect([keys.size, keys.between('hosts.', 'hosts/'), keys.between('', '\u007f')]).toEqual([
    ...[0, [], []],
  ]);
});

test('a list of one collection looks at no key of another', () => {
  const keys = new WaitingKeys();
  for (let n = 0; n < 100; n += 1) keys.set(`hosts.h${n}`, { revision: n + 1, added: 1 });
  const scans = vi.spyOn(Map.prototype, 'keys');
  try {
    expect(keys.between('abandonedResources.', 'abandonedResources/')).toEqual([]);
    expect(scans).not.toHaveBeenCalled();
    expect(keys.between('', '\u007f')).toHaveLength(100);
    expect(scans, 'a scan is not seen').toHaveBeenCalled();
  } finally {
    scans.mockRestore();
  }
});
