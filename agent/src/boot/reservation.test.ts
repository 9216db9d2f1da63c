import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  asMac,
  type DhcpPacket,
  decodeDhcp,
  dhcpOption,
  encodeDhcp,
  readOption,
  writeOption,
} from '@rackwright/dhcp';
import { afterEach, expect, test } from 'vitest';
import type { ReservationDhcpConfig } from './dhcp-config.ts';
import { parseLeases } from './lease-file.ts';
import { discover, type Mailbox, openMailbox, relayedDiscover } from './test-clients.ts';
import { type BootRig, grantedMac, knownMac, startRig, unknownMac } from './test-rig.ts';

const closers: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await rm(leasesPath, { force: true });
});

interface Rack {
  readonly rig: BootRig;
  /** The relay through which clients are answered on loopback. */
  readonly relay: Mailbox;
  readonly dhcpPort: number;
}

const leasesPath = join(tmpdir(), `rackwright-leases-${process.pid}-${performance.now()}`);

async function startRack(
  more: Partial<ReservationDhcpConfig> = {},
  discovery?: Parameters<typeof startRig>[0]['discovery'],
): Promise<Rack> {
  const relay = await openMailbox();
  const dhcp: ReservationDhcpConfig = {
    mode: 'reservation',
    address: '127.0.0.1',
    port: 0,
    pxeAddress: '127.0.0.1',
    pxePort: 0,
    clientPort: 68,
    relayPort: relay.port,
    broadcastAddress: '127.255.255.255',
    subnet: { network: '127.0.0.0/8', routers: [], dnsServers: [], leaseSeconds: 600 },
    reservations: [{ mac: asMac(knownMac), address: '127.77.0.50' }],
    range: { first: '127.77.0.100', last: '127.77.0.120' },
    declinedMs: 60_000,
    otherServer: { quietMs: 60_000, probeMs: 0 },
    leasesPath,
    ...more,
  };
  const rig = await startRig({
    interface: { dhcp },
    ...(discovery === undefined ? {} : { discovery }),
  });
  closers.push(() => relay.close(), rig.close);
  const { dhcpPort } = rig.services;
  if (dhcpPort === undefined) throw new Error('DHCP is off');
  return { rig, relay, dhcpPort };
}

function requestFor(discovered: Uint8Array, address: string, server = '127.0.0.1'): Uint8Array {
  const packet = decodeDhcp(discovered);
  const options = new Map([
    ...packet.options,
    writeOption(dhcpOption.messageType, 'request'),
    writeOption(dhcpOption.requestedAddress, address),
    writeOption(dhcpOption.serverIdentifier, server),
  ]);
  return encodeDhcp({ ...packet, options });
}

function typeOf(packet: DhcpPacket): string | undefined {
  return readOption(packet, dhcpOption.messageType);
}

test('a granted host gets address and loader in one answer, also after a restart', async () => {
  const asked = relayedDiscover(grantedMac, 7);
  const first = await startRack();
  const offer = await discover(first.relay, first.dhcpPort, asked);
  expect(offer).toMatchObject({
    bootFile: '52-54-00-77-00-02/snponly.efi',
    nextServerAddress: '127.0.0.1',
    yourAddress: expect.stringMatching(/^127\.77\.0\.1[012]\d$/),
  });
  const request = requestFor(asked, offer.yourAddress);
  const ack = await discover(first.relay, first.dhcpPort, request);
  expect([typeOf(ack), ack.yourAddress]).toEqual(['ack', offer.yourAddress]);
  await first.rig.services.close();
  const { records } = parseLeases(await readFile(leasesPath, 'utf8'));
  expect(records.leases).toMatchObject([{ mac: grantedMac, address: offer.yourAddress }]);
  const second = await startRack();
  const again = await discover(second.relay, second.dhcpPort, asked);
  expect(again.yourAddress).toBe(offer.yourAddress);
});

test('the server gives a host without a grant its reservation and nothing to boot', async () => {
  const { relay, dhcpPort } = await startRack();
  const offer = await discover(relay, dhcpPort, relayedDiscover(knownMac, 7));
  expect(offer).toMatchObject({ yourAddress: '127.77.0.50', bootFile: '' });
});

test('a stranger gets an address of the discovery range, and during discovery a boot', async () => {
  const discovery = { first: '127.77.0.200', last: '127.77.0.210' };
  const limits = { bootsMax: 1, bootsPerHourMax: 1, spacingMs: 1_000 };
  let on = false;
  const { relay, dhcpPort } = await startRack(
    { discovery },
    { memory: () => (on ? { limits, boots: new Map() } : undefined), open: () => undefined },
  );
  const asked = relayedDiscover(unknownMac, 7);
  const address = expect.stringMatching(/^127\.77\.0\.2\d\d$/);
  const off = await discover(relay, dhcpPort, asked);
  expect(off).toMatchObject({ yourAddress: address, bootFile: '' });
  on = true;
  const offer = await discover(relay, dhcpPort, asked);
  expect(offer).toMatchObject({
    yourAddress: off.yourAddress,
    bootFile: '52-54-00-77-00-99/snponly.efi',
  });
  const known = await discover(relay, dhcpPort, relayedDiscover(knownMac, 7));
  expect(known).toMatchObject({ yourAddress: '127.77.0.50', bootFile: '' });
});

test('strangers get no answer; a server that a client names is looked for', async () => {
  const { rig, relay, dhcpPort } = await startRack();
  relay.send(relayedDiscover(unknownMac, 7), dhcpPort);
  const known = relayedDiscover(knownMac, 7);
  // The answer to another host proves that this one has been decided on.
  await discover(relay, dhcpPort, known);
  relay.send(requestFor(known, '127.77.0.200', '127.0.0.9'), dhcpPort);
  relay.send(known, dhcpPort);
  // Our own question may arrive here as well. A client that only claims another server silences
  // nobody.
  let heard = await relay.next(2_000);
  while (heard !== undefined && decodeDhcp(heard.datagram).op !== 'reply') {
    heard = await relay.next(2_000);
  }
  expect(heard).toBeDefined();
  const told = rig.lines.filter((line) => line.includes('names another DHCP server'));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('127.0.0.9');
});
