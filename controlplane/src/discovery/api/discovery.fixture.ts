/** A control plane whose rack r1 accepts unknown machines, and the reports of its agent. */
import { create, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { actors, agent, type HostName, type InventorySchema } from '@rackwright/messages';
import { afterEach, beforeEach } from 'vitest';
import { addSurroundings, type Fixture, startFixture } from '../../services/rpc.fixture.ts';

export const macOf = (n: number) => `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`;
export const bmc = { address: '192.0.2.200', credential: 'credentials/bmc' };
export const expectedSpec = { rack: 'racks/r1', bmc: { ...bmc, address: '' } };

/** The rack's initial policy, with a change. */
export const policy = (change: object = {}) => ({
  ...{ enabled: true, machinesMax: 5, bmcNetworks: ['192.0.2.0/24'] },
  ...change,
});

type InventoryInit = MessageInitShape<typeof InventorySchema>;

let findings = 0;

/** The report of an agent about the nth machine. */
export function finding(n: number, change: Exclude<InventoryInit, Message> = {}, bootMac = '') {
  findings += 1;
  const uuid = Uint8Array.from({ length: 16 }, (_, at) => (at * 5 + n) & 0xff);
  return create(agent.DiscoveredSchema, {
    id: `f${findings}`,
    bootMac: bootMac || macOf(n),
    bmcAddress: `192.0.2.${n}`,
    inventory: {
      system: { manufacturer: 'Acme', product: 'Box', serial: `SN-${n}`, uuid },
      interfaces: [{ name: 'eth0', mac: macOf(n) }],
      memoryBytes: 1_073_741_824n,
      ...change,
    },
  });
}

/** One for each test of a file. */
export function discoverySite() {
  let fixture: Fixture;
  beforeEach(async () => {
    fixture = await startFixture();
    await addSurroundings(fixture);
    await fixture.racks.updateRack({
      rack: { name: 'racks/r1', spec: { discovery: policy() } },
    });
  });
  afterEach(() => fixture.stop());
  return {
    /** The fixture of the present test. */
    get fixture(): Fixture {
      return fixture;
    },
    report: (told: agent.Discovered, rack = 'r1') =>
      fixture.controlPlane.discovery.report(rack, told),
    async listed() {
      return (await fixture.discovery.listDiscoveredMachines({})).discoveredMachines;
    },
    async hostNames(): Promise<HostName[]> {
      return (await fixture.hosts.listHosts({})).hosts.map(({ name }) => name);
    },
    /** Resolves once every earlier wake has been handled. */
    async pass(): Promise<void> {
      fixture.controlPlane.discovery.wake();
      await fixture.controlPlane.discovery.accept(
        'none',
        {
          hostId: 'x',
          labels: {},
          spec: undefined,
          by: actors.unknown,
          requestId: '',
          actor: actors.unknown,
        },
        true,
      );
    },
    async setPolicy(change: object): Promise<void> {
      await fixture.racks.updateRack({
        rack: { name: 'racks/r1', spec: { discovery: policy(change) } },
        updateMask: { paths: ['spec.discovery'] },
      });
    },
    async expectHost(n: number): Promise<void> {
      await fixture.discovery.createExpectedHost({
        expectedHostId: `e${n}`,
        expectedHost: { match: { serial: `SN-${n}` }, labels: { n: `${n}` }, spec: expectedSpec },
      });
    },
  };
}
