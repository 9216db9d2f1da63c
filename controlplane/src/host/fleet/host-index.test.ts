import { create } from '@bufbuild/protobuf';
import { HostSchema, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { HostIndex } from './host-index.ts';

function recordOf(labels: Record<string, string>, bootMacs = ['52:54:00:00:00:01']) {
  const spec = { rack: 'racks/r1', bootMacs };
  const host = create(HostSchema, { name: 'hosts/h1', uid: 'u1', labels, spec });
  return create(wire.HostRecordSchema, { host });
}

test('a rack is told when what its hosts boot by changes, and of no other label', () => {
  const index = new HostIndex();
  const told: string[] = [];
  index.onBootChange((rackId) => told.push(rackId));
  const changes: [string, Record<string, string>, number][] = [
    ['a new host', {}, 1],
    ['some label', { site: 'x' }, 1],
    ['a boot profile', { site: 'x', boot: 'secure' }, 2],
    ['the same one', { boot: 'secure' }, 2],
    ['another one', { boot: 'serial' }, 3],
    ['none any more', {}, 4],
  ];
  for (const [at, [what, labels, times]] of changes.entries()) {
    index.note('h1', recordOf(labels), at + 1);
    expect(told.length, what).toBe(times);
  }
  expect(new Set(told)).toEqual(new Set(['r1']));
});

test('a host that is made again is told of, also where the index knew the one before', () => {
  const index = new HostIndex();
  const told: string[] = [];
  index.onBootChange((rackId) => told.push(rackId));
  index.note('h1', recordOf({}), 1);
  index.note('h1', recordOf({}), 1);
  expect(told).toEqual(['r1']);
  index.drop('h1');
  expect(index.hostIdsOfRack('r1')).toEqual([]);
  index.note('h1', recordOf({}), 1);
  expect(told).toEqual(['r1', 'r1', 'r1']);
  expect(index.hostIdOfUid('u1', 'r1')).toBe('h1');
});
