import { create } from '@bufbuild/protobuf';
import { type DeviceFacts, methodToWire, storageDeviceOf } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { findTargets } from './targets.ts';

const mib = 1024 ** 2;

function disk(change: Partial<DeviceFacts> = {}): DeviceFacts {
  const region = { name: 'sda', sizeBytes: 2 * mib, logicalBlockBytes: 512 };
  return {
    ...{ name: 'sda', transport: 'sata', model: 'M', serial: 'S1', wwn: 'W1', firmware: '1' },
    ...{ sizeBytes: 2 * mib, rotational: false, removable: false, readOnly: false },
    ...{ discardSupported: true, raidVolume: false, holders: [], partitions: [] },
    regions: [region],
    ...change,
  };
}

const plan = (
  device: DeviceFacts | undefined,
  more: Pick<Partial<agent.DevicePlan>, 'method'> = {},
) =>
  create(agent.DevicePlanSchema, {
    ...(device === undefined ? {} : { device: storageDeviceOf(device) }),
    method: methodToWire('overwrite'),
    ...more,
  });

const listing = (...devices: DeviceFacts[]) => ({ devices, signs: [] });

test.each<[string, Partial<DeviceFacts>, string]>([
  ['model', { model: 'N' }, 'has the model "N", not "M" as planned'],
  ['WWN', { wwn: 'W2' }, 'has the WWN "W2", not "W1" as planned'],
  ['transport', { transport: 'nvme' }, 'has the transport "nvme", not "sata" as planned'],
  [
    'size',
    { regions: [{ name: 'sda', sizeBytes: 3 * mib, logicalBlockBytes: 512 }] },
    'has the size "3145728", not "2097152" as planned',
  ],
])('another %s is another disk', (_, change, text) => {
  const found = findTargets([plan(disk())], listing(disk(change)));
  expect(found).toEqual({
    kind: 'changed',
    differences: [`disk S1 ${text}`],
    onlyMissing: false,
  });
});

test('a disk with another name, firmware or partitions is still the target', () => {
  const now = disk({
    name: 'sdz',
    firmware: '2',
    partitions: [{ region: 'sda', offsetBytes: 0, sizeBytes: 1 }],
  });
  expect(findTargets([plan(disk())], listing(now))).toMatchObject({
    kind: 'targets',
    targets: [{ identity: 'S1', device: { name: 'sdz' }, decision: { kind: 'erase' } }],
  });
});

test('a disk that hides a part of its area still is the planned one, if it is to show all', () => {
  const hiding = (sizeBytes: number) =>
    disk({
      sizeBytes,
      regions: [{ name: 'sda', sizeBytes, logicalBlockBytes: 512 }],
      capacity: {
        ...{ kind: 'examined', nativeBytes: 4 * mib, overlayBytes: 0 },
        hostProtectedBytes: 4 * mib - sizeBytes,
      },
    });
  const asked = { ...plan(hiding(2 * mib)), removeHiddenArea: true };
  expect(findTargets([asked], listing(hiding(3 * mib)))).toMatchObject({
    kind: 'targets',
    targets: [{ decision: { kind: 'refused' } }],
  });
  expect(findTargets([plan(hiding(2 * mib))], listing(hiding(3 * mib))).kind).toBe('changed');
});

test('a device that is missing is told apart from one that is another', () => {
  const other = disk({ serial: 'S2', wwn: 'W2', name: 'sdb' });
  const missing = findTargets([plan(disk()), plan(other)], listing(disk()));
  expect(missing).toMatchObject({ kind: 'changed', onlyMissing: true });
  const both = findTargets([plan(disk()), plan(other)], listing(disk({ model: 'N' })));
  expect(both).toMatchObject({ kind: 'changed', onlyMissing: false });
});

test('an order without a known method, or for a disk that must not be written, is refused', () => {
  const unknown = plan(disk(), { method: agent.ErasureMethod.UNSPECIFIED });
  expect(findTargets([unknown], listing(disk()))).toMatchObject({
    targets: [{ decision: { kind: 'refused', reason: 'the order names no known method' } }],
  });
  const readOnly = disk({ readOnly: true });
  expect(findTargets([plan(readOnly)], listing(readOnly))).toMatchObject({
    targets: [{ decision: { kind: 'refused', reason: 'is read-only' } }],
  });
});

test('the only method of a step counts, whatever the order says of the device', () => {
  const found = findTargets([plan(disk())], listing(disk()), 'metadataOnly');
  expect(found).toMatchObject({
    targets: [{ decision: { kind: 'erase', method: 'metadataOnly' } }],
  });
});

test('an empty order has no targets; a disk outside the order is a difference', () => {
  expect(findTargets([], listing())).toEqual({ kind: 'none' });
  expect(findTargets([], listing(disk()))).toMatchObject({
    kind: 'changed',
    differences: [expect.stringContaining('S1 (sda) is not in the plan')],
  });
});

test('a card is the target in whatever slot of its reader, and the empty slots are none', () => {
  const slot = (name: string) => disk({ ...{ name, transport: 'usb', removable: true } });
  const empty = { ...slot('sdb'), regions: [], sizeBytes: 0 };
  for (const present of [listing(empty, slot('sda')), listing(slot('sda'), empty)]) {
    expect(findTargets([plan(slot('sda'))], present)).toMatchObject({
      kind: 'targets',
      targets: [{ device: { name: 'sda' }, decision: { kind: 'erase' } }],
    });
  }
});

test('remote storage counts only when it is ordered', () => {
  const lun = disk({ serial: 'S2', wwn: 'W2', name: 'sdb', transport: 'iscsi' });
  expect(findTargets([plan(disk())], listing(disk(), lun))).toMatchObject({
    kind: 'targets',
    targets: [{ identity: 'S1' }],
  });
  expect(findTargets([plan(disk()), plan(lun)], listing(disk(), lun))).toMatchObject({
    kind: 'targets',
    targets: [{ identity: 'S1' }, { identity: 'S2', decision: { kind: 'erase' } }],
  });
});
