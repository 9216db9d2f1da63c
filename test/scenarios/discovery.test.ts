/** Machines that nobody knows, through the operators' API of a control plane on loopback. */
import { create } from '@bufbuild/protobuf';
import { addSurroundings, startFixture } from '@rackwright/controlplane/testing';
import { agent } from '@rackwright/messages';
import { expect, test } from 'vitest';

const good = '52:54:00:00:0a:01';
const credential = 'credentials/bmc';

function finding(id: string, macs: readonly string[]): agent.Discovered {
  return create(agent.DiscoveredSchema, {
    id,
    bootMac: good,
    bmcAddress: '192.0.2.9',
    inventory: { system: { serial: 'SN-9' }, interfaces: macs.map((mac) => ({ mac })) },
  });
}

test('tinkerbell-L27: what is found twice is one host; a NIC without a MAC is left', async () => {
  const fixture = await startFixture();
  try {
    await addSurroundings(fixture);
    const rule = { name: 'all', hostId: 'n-{serial}', spec: { bmc: { credential } } };
    const discovery = { enabled: true, rules: [rule], bmcNetworks: ['192.0.2.0/24'] };
    await fixture.racks.updateRack({ rack: { name: 'racks/r1', spec: { discovery } } });
    const told = [
      finding('f1', ['not a MAC', good, '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff']),
      finding('f2', [good, '52:54:00:00:0A:02'].toReversed()),
      finding('f2', [good]),
    ];
    const kinds: string[] = [];
    for (const each of told) {
      kinds.push((await fixture.controlPlane.discovery.report('r1', each)).kind);
    }
    // The rule makes a host of the first.
    expect(kinds).toEqual(['listed', 'known', 'known']);
    const { hosts } = await fixture.hosts.listHosts({});
    expect(hosts.map(({ name, spec }) => [name, spec?.bootMacs])).toEqual([
      ['hosts/n-sn-9', [good]],
    ]);
    const { discoveredMachines } = await fixture.discovery.listDiscoveredMachines({});
    expect(discoveredMachines).toEqual([]);
  } finally {
    await fixture.stop();
  }
});
