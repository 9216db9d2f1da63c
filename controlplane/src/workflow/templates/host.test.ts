import { clone, create } from '@bufbuild/protobuf';
import {
  BmcIdentitySchema,
  HostSchema,
  HostStatusSchema,
  InventorySchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { templateHostOf } from './host.ts';
import { bareHost } from './hosts.fixture.ts';

test('a host without an inventory gives templates what its record says', () => {
  expect(templateHostOf(bareHost, undefined)).toEqual({
    name: 'hosts/h1',
    id: 'h1',
    uid: '4f6c',
    rack: 'r1',
    labels: { role: 'worker' },
    bmc: { address: '192.0.2.7' },
    bootMacs: ['52:54:00:00:00:01'],
    serial: undefined,
    manufacturer: undefined,
    product: undefined,
    memoryBytes: undefined,
    disks: [],
    interfaces: [],
  });
});

test('an inventory gives them the machine, and what it does not know stays unknown', () => {
  const inventory = create(InventorySchema, {
    system: { manufacturer: 'Acme', product: 'To be filled by O.E.M.', serial: ' SN-1 ' },
    memoryBytes: 64n,
    devices: [{ device: 'sda', serial: 'D1', sizeBytes: 512n }],
    interfaces: [{ name: 'eth0', mac: '52:54:00:00:00:01', speedMbps: 10_000, linkUp: true }],
  });
  expect(templateHostOf(bareHost, inventory)).toMatchObject({
    manufacturer: 'Acme',
    product: undefined,
    serial: 'SN-1',
    memoryBytes: 64n,
    disks: [{ serial: 'D1', wwn: undefined, model: undefined, sizeBytes: 512n, kernelName: 'sda' }],
    interfaces: [{ name: 'eth0', mac: '52:54:00:00:00:01', speedMbps: 10_000n, linkUp: true }],
  });
});

test('values of the BMC stand in for values that firmware leaves open', () => {
  const host = clone(HostSchema, bareHost);
  host.status = create(HostStatusSchema);
  host.status.bmcIdentity = create(BmcIdentitySchema, { serial: 'FRU-7', product: 'Box' });
  const inventory = create(InventorySchema, { system: { serial: '0', product: 'Box 9' } });
  expect(templateHostOf(host, inventory)).toMatchObject({ serial: 'FRU-7', product: 'Box 9' });
});
