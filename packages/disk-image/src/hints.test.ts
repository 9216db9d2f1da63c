import { expect, test } from 'vitest';
import { type DiskFacts, rootDisk } from './hints.ts';

const gib = 1024 ** 3;

function disk(name: string, change: Partial<DiskFacts> = {}): DiskFacts {
  return {
    ...{ name, model: 'M', serial: `S-${name}`, wwn: `0x5000${name}`, sizeBytes: 10 * gib },
    ...{ rotational: false, readOnly: false, removable: false, ...change },
  };
}

const small = disk('sda');
const large = disk('sdb', { sizeBytes: 100 * gib, rotational: true, model: 'L' });
const slot = disk('nvme0n1', { paths: ['pci-0000:01:00.0-nvme-1'] });
const all = [small, large, slot, disk('sdc', { readOnly: true }), disk('sdd', { removable: true })];

test.each([
  [{ serial: 'S-sda' }, small],
  [{ wwn: 'naa.5000SDB' }, large],
  [{ byPath: '/dev/disk/by-path/pci-0000:01:00.0-nvme-1' }, slot],
  [{ rotational: true }, large],
  [{ minSizeBytes: 11 * gib }, large],
  [{ sizeBytes: 10 * gib, model: 'M', serial: 'S-sda' }, small],
])('the hints %j select the disk that they describe', (hints, expected) => {
  expect(rootDisk(all, hints)).toBe(expected);
});

test('without a hint the only disk is taken, and none of several', () => {
  expect(rootDisk([small], {})).toBe(small);
  expect(() => rootDisk(all, {})).toThrow('3 disks fit without a hint: S-sda (10737418240 bytes');
  expect(() => rootDisk(all, { rotational: false })).toThrow('2 disks fit the hints rotational');
});

test('an error says why no disk fits', () => {
  expect(() => rootDisk(all, { serial: 'S-sdb', minSizeBytes: 200 * gib })).toThrow(
    /S-sda .*: not by serial, minSizeBytes.*S-sdb .*: not by minSizeBytes/,
  );
  expect(() => rootDisk(all, { serial: 'S-sdc' })).toThrow('no disk fits the hints serial S-sdc');
  expect(() => rootDisk([], {})).toThrow('the host has no disk that can be written');
});
