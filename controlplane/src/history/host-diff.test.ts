import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HostPower, HostSchema, HostState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { diffHosts } from './host-diff.ts';

type Init = MessageInitShape<typeof HostSchema>;

function lines(before: Init, after: Init): string[] {
  return diffHosts(create(HostSchema, before), create(HostSchema, after)).map(
    (each) => `${each.path}: ${each.before || '-'} > ${each.after || '-'}`,
  );
}

test('each field that differs is named by its path, with both values', () => {
  const spec = { power: HostPower.ON, retired: false, bmc: { address: '10.0.0.1' } };
  const changed = { power: HostPower.OFF, bmc: { address: '10.0.0.1', port: 444 } };
  expect(
    lines(
      { labels: { a: '1', b: '2' }, spec, status: { state: HostState.NEW } },
      { labels: { b: '3', c: '4' }, spec: changed, status: { state: HostState.AVAILABLE } },
    ),
  ).toEqual([
    'labels[a]: 1 > -',
    'labels[b]: 2 > 3',
    'labels[c]: - > 4',
    'spec.bmc.port: - > 444',
    'spec.retired: false > -',
    'spec.power: on > off',
    'status.state: new > available',
  ]);
});

test('disks, interfaces, faults and holds are compared by name, in any order', () => {
  const disk = (serial: string, firmware: string) => ({ serial, firmware });
  const inventory = (...devices: object[]) => ({ status: { inventory: { devices } } });
  expect(
    lines(inventory(disk('A', '1'), disk('B', '1')), inventory(disk('B', '2'), disk('A', '1'))),
  ).toEqual(['status.inventory.devices[B].firmware: 1 > 2']);
  expect(lines(inventory(disk('A', '1')), inventory(disk('C', '1')))).toEqual([
    'status.inventory.devices[A].serial: A > -',
    'status.inventory.devices[A].firmware: 1 > -',
    'status.inventory.devices[C].serial: - > C',
    'status.inventory.devices[C].firmware: - > 1',
  ]);
  const twins = inventory(disk('', '1'), disk('', '2'));
  expect(lines(twins, inventory(disk('', '1'), disk('', '3')))).toEqual([
    'status.inventory.devices[1].firmware: 2 > 3',
  ]);
  const fault = (type: string, message: string) => ({ type, message });
  expect(
    lines(
      { status: { faults: [fault('x', 'm'), fault('y', 'm')] } },
      { status: { faults: [fault('y', 'm')] } },
    ),
  ).toEqual(['status.faults[x].type: x > -', 'status.faults[x].message: m > -']);
});

test('the difference shows times as times and bytes in hex, and cuts long values', () => {
  const long = 'x'.repeat(600);
  const found = lines(
    { status: { bmcIdentity: { guid: new Uint8Array([1, 255]) } } },
    { createTime: timestampFromMs(0), status: { image: long } },
  );
  expect(found.slice(0, 2)).toEqual([
    'create_time: - > 1970-01-01T00:00:00.000Z',
    'status.bmc_identity.guid: 01ff > -',
  ]);
  expect(found[2]).toBe(`status.image: - > ${'x'.repeat(500)}…`);
});

test('computed fields are left out, and equal hosts have no difference', () => {
  const host: Init = { name: 'hosts/h1', labels: { a: '1' }, status: { poweredOn: false } };
  const served: Init = {
    ...host,
    etag: 'e2',
    updateTime: timestampFromMs(1),
    status: { poweredOn: false, display: 'd', agentConnected: true, progress: { percent: 3 } },
  };
  expect(lines(host, host)).toEqual([]);
  expect(lines(host, served)).toEqual([]);
});

test('the difference is bounded, and says how many entries are left out', () => {
  const labels = Object.fromEntries(Array.from({ length: 1_200 }, (_, at) => [`k${at}`, 'v']));
  const found = lines({}, { labels });
  expect(found).toHaveLength(1_001);
  expect(found.at(-1)).toBe('…: - > 200 further fields differ');
});
