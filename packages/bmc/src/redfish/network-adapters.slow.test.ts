/** Network cards as their adapters tell them, with the simulated BMC over real sockets. */
import type { RedfishInventory } from '@rackwright/sim/redfish';
import { afterEach, expect, test } from 'vitest';
import { driverFor, type startHost as StartHost, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

type Habits = NonNullable<Parameters<typeof StartHost>[0]>['habits'];

async function listed(inventory: RedfishInventory, habits: Habits = {}) {
  const { bmc } = await startHost({ inventory, habits });
  closers.push(() => bmc.close());
  const read = await driverFor(bmc).readInventory(['interfaces']);
  if (read.kind !== 'ok') throw new Error(JSON.stringify(read));
  const { interfaces, complete } = read.value;
  return { interfaces, complete, requests: bmc.calls().length };
}

const mac = (last: number) => `52:54:00:00:00:0${last}`;
const adapter = {
  id: 'NIC.Slot.1',
  ports: [{ id: 'NIC.Slot.1-1', speedMbps: 25_000 }, { id: '2' }],
  functions: [
    { mac: mac(1), port: 'NIC.Slot.1-1' },
    { mac: mac(2), port: 'NIC.Slot.1-1' },
    { mac: mac(3), port: '2' },
    { mac: mac(4), port: '2', type: 'iSCSI' as const },
    { mac: mac(5), port: '2', type: 'Disabled' as const },
  ],
};
const told = [
  { name: 'NIC.Slot.1-1', mac: mac(1), speedMbps: 25_000, linkUp: true },
  { name: 'NIC.Slot.1-1', mac: mac(2), speedMbps: 25_000, linkUp: true },
  { name: 'NIC.Slot.1/2', mac: mac(3), linkUp: false },
];

test.each([
  { adaptersIn: 'system', adapterPorts: 'Ports' },
  { adaptersIn: 'chassis', adapterPorts: 'NetworkPorts' },
] as const)('adapters list the Ethernet addresses of their ports ($adaptersIn)', async (habits) => {
  const { interfaces, complete } = await listed({ adapters: [adapter] }, habits);
  expect(interfaces).toEqual(told);
  expect(complete).toBe(true);
});

test.each(['Ports', 'NetworkPorts'] as const)(
  'an adapter without functions has the addresses of its %s',
  async (adapterPorts) => {
    const ports = [
      { id: '1', speedMbps: 10_000, macs: [mac(1)] },
      { id: '2', macs: ['00:00:00:00:00:00'] },
    ];
    const { interfaces } = await listed({ adapters: [{ id: 'A', ports }] }, { adapterPorts });
    expect(interfaces).toEqual([{ name: 'A/1', mac: mac(1), speedMbps: 10_000, linkUp: true }]);
  },
);

test('a card that both lists have stands there once, with what each says of it', async () => {
  const { interfaces } = await listed({
    interfaces: [{ mac: mac(1), speedMbps: 1_000 }, { mac: '52-54-00-00-00-03' }, { mac: mac(9) }],
    adapters: [adapter],
  });
  expect(interfaces).toEqual([
    { name: '1', mac: mac(1), speedMbps: 1_000, linkUp: true },
    { name: '2', mac: '52-54-00-00-00-03', linkUp: false },
    { name: '3', mac: mac(9), linkUp: false },
    told[1],
  ]);
});

test('a BMC with more adapters than are read is bounded, and said to list more', async () => {
  const functions = Array.from({ length: 60 }, () => ({ mac: mac(1), port: 'p' }));
  const many = ['A', 'B', 'C', 'D'].map((id) => ({ id, ports: [{ id: 'p' }], functions }));
  const { interfaces, complete, requests } = await listed({ adapters: many });
  expect(interfaces).toEqual([{ name: 'A/p', mac: mac(1), linkUp: false }]);
  expect(complete).toBe(false);
  expect(requests).toBeLessThan(150);
});
