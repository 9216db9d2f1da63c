import { create } from '@bufbuild/protobuf';
import { InventorySchema, type StorageSignKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { DeviceFacts } from './facts.ts';
import { decideSigns, describeGap, type SignKind, type StorageSign, signGaps } from './signs.ts';
import { storageSignsOf, storageSignToWire } from './wire-facts.ts';

function sign(change: Partial<StorageSign> = {}): StorageSign {
  const nothing = { model: '', serial: '', sizeBytes: 0, detail: '', devices: [] };
  return { source: 'bus', kind: 'drive', name: 'Drive 3', ...nothing, ...change };
}

function disk(name: string, serial: string): DeviceFacts {
  return {
    ...{ name, serial, transport: 'sata', model: 'M', wwn: '', firmware: '', sizeBytes: 1 },
    ...{ rotational: false, removable: false, readOnly: false, discardSupported: false },
    ...{ raidVolume: false, holders: [], regions: [], partitions: [] },
  };
}

test.each<[SignKind, 'gap' | 'decided']>([
  ['controllerWithoutDriver', 'gap'],
  ['remappedDrive', 'gap'],
  ['persistentMemory', 'gap'],
  ['flashChip', 'decided'],
  ['deviceWithoutBlocks', 'gap'],
  ['replayProtected', 'decided'],
  ['emptyReader', 'decided'],
  ['drive', 'gap'],
])('the check decides about %s without a device: %s', (kind, decision) => {
  expect(decideSigns([sign({ kind })], []).map((each) => each.kind)).toEqual([decision]);
});

test('a device accounts for the sign that names it or has its serial', () => {
  const devices = [disk('pmem0', 'P'), disk('sda', 'A')];
  const by = (change: Partial<StorageSign>) => decideSigns([sign(change)], devices)[0];
  expect(by({ devices: ['pmem0'] })).toMatchObject({ kind: 'accounted', by: ['P'] });
  expect(by({ serial: 'A' })).toMatchObject({ kind: 'accounted', by: ['A'] });
  expect(by({ serial: 'B' })).toMatchObject({ kind: 'gap' });
  expect(by({ devices: ['sdz'] })).toMatchObject({ kind: 'gap' });
});

test('the check trusts no serial number that two devices have', () => {
  const devices = [disk('sda', 'A'), disk('sdb', 'A')];
  expect(signGaps([sign({ serial: 'A' })], devices)).toHaveLength(1);
});

test('a gap is named with what fixes it', () => {
  const [gap] = signGaps([sign({ model: 'ACME', serial: 'B', detail: 'bay 3' })], []);
  expect(gap && describeGap(gap)).toBe(
    'drive Drive 3 (ACME, B, bay 3) is listed by the BMC, and the runner sees no such disk: ' +
      'look whether it is broken, switched off, or behind a controller in RAID mode',
  );
});

test('the check carries signs over the wire and back', () => {
  const full = sign({ source: 'firmware', kind: 'persistentMemory', model: 'M', serial: 'S' });
  const signs = [{ ...full, sizeBytes: 2 ** 36, detail: 'slot 1', devices: ['pmem0'] }, sign()];
  const inventory = create(InventorySchema, { storageSigns: signs.map(storageSignToWire) });
  expect(storageSignsOf(inventory)).toEqual(signs);
});

test('a kind of a newer version is a gap; the list of older runners is read', () => {
  const inventory = create(InventorySchema, {
    storageSigns: [{ kind: 99 as StorageSignKind, name: 'new' }],
    undrivenStorage: ['0000:03:00.0'],
  });
  const signs = storageSignsOf(inventory);
  const nothing = { model: '', serial: '', sizeBytes: 0, detail: '', devices: [] };
  expect(signs).toEqual([
    { source: 'bus', kind: 'controllerWithoutDriver', name: '0000:03:00.0', ...nothing },
    { source: 'kernel', kind: 'deviceWithoutBlocks', name: 'new', ...nothing },
  ]);
  const gaps = signGaps(signs, []);
  expect(gaps.map((gap) => gap.sign.name)).toEqual(['0000:03:00.0', 'new']);
});
