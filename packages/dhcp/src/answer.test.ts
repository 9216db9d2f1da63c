import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  answerBootRequest,
  type ProxyAnswer,
  type ProxyService,
  type ProxySettings,
  readBootRequest,
} from './answer.ts';
import type { DhcpBootPermission } from './boot-parts.ts';
import { dhcpOption, readOption, writeOption } from './options.ts';
import { type DhcpPacket, decodeDhcp, encodeDhcp } from './packet.ts';
import { captures } from './test-captures.ts';

const settings: ProxySettings = {
  serverAddress: '10.78.0.1',
  loadersOf: () => ({ bios: 'undionly.kpxe', uefiX64: 'snponly.efi' }),
  scriptUrl: (mac) => `http://10.78.0.1:8080/boot/${mac}/script.ipxe`,
  loaderUrl: (mac, loader) => `http://10.78.0.1:8080/boot/${mac}/files/${loader}`,
  loaderPath: (mac, loader) => `${mac}/${loader}`,
  servesRaspberryPi: true,
  broadcastAddress: '255.255.255.255',
  clientPort: 68,
  relayPort: 67,
};

const mac = '52:54:00:78:00:01';
const nobody = { address: '0.0.0.0', port: 68 };
const leased = { address: '10.78.0.135', port: 4011 };

function answer(
  packet: DhcpPacket,
  permission: DhcpBootPermission = 'runner',
  service: ProxyService = 'dhcp',
  from = nobody,
): ProxyAnswer {
  const asked = readBootRequest(packet, service, from);
  return asked.kind === 'silence' ? asked : answerBootRequest(asked.request, permission, settings);
}

function reply(...args: Parameters<typeof answer>): ProxyAnswer & { kind: 'reply' } {
  const answered = answer(...args);
  if (answered.kind === 'silence') throw new Error(`silence: ${answered.reason}`);
  return answered;
}

function packetOf(name: keyof typeof captures): DhcpPacket {
  return decodeDhcp(captures[name]);
}

function withOption(packet: DhcpPacket, option: readonly [number, Uint8Array]): DhcpPacket {
  return { ...packet, options: new Map([...packet.options, option]) };
}

test('each host gets the loader that is its own, and none where nobody can tell which', () => {
  const named = new Map([[mac, { uefiX64: 'shimx64.efi' }]]);
  const own: ProxySettings = { ...settings, loadersOf: (one) => named.get(one) };
  const ask = (hardwareAddress: Uint8Array) => {
    const packet = { ...packetOf('edk2PxeDiscover'), hardwareAddress };
    const asked = readBootRequest(packet, 'dhcp', nobody);
    if (asked.kind === 'silence') throw new Error(asked.reason);
    return answerBootRequest(asked.request, 'runner', own);
  };
  const first = ask(Uint8Array.of(0x52, 0x54, 0, 0x78, 0, 1));
  expect(first).toMatchObject({ packet: { bootFile: `${mac}/shimx64.efi` } });
  const reason = 'a boot profile that is not configured';
  expect(ask(Uint8Array.of(0x52, 0x54, 0, 0x78, 0, 2))).toEqual({ kind: 'silence', reason });
});

test('Debian’s iPXE is offered its script in the form that needs no port 4011', () => {
  const { packet, to } = reply(packetOf('ipxeRomDiscover'));
  expect(to).toEqual({ address: '255.255.255.255', port: 68 });
  expect(packet).toMatchObject({
    op: 'reply',
    transactionId: 0xcec48332,
    yourAddress: '0.0.0.0',
    nextServerAddress: '10.78.0.1',
    bootFile: `http://10.78.0.1:8080/boot/${mac}/script.ipxe`,
  });
  expect(readOption(packet, dhcpOption.messageType)).toBe('offer');
  expect(readOption(packet, dhcpOption.serverIdentifier)).toBe('10.78.0.1');
  expect(readOption(packet, dhcpOption.vendorClass)).toBe('PXEClient');
  expect(readOption(packet, dhcpOption.pxe)).toEqual({ discoveryControl: 8, others: [] });
});

test('the proxy offers plain PXE firmware its loader, the list of servers and the menu', () => {
  const { packet } = reply(packetOf('edk2PxeDiscover'));
  expect(packet).toMatchObject({ bootFile: `${mac}/snponly.efi`, nextServerAddress: '10.78.0.1' });
  expect(readOption(packet, dhcpOption.pxe)).toEqual({
    discoveryControl: 11,
    bootServers: [{ type: 0x8000, addresses: ['10.78.0.1'] }],
    bootMenu: [{ type: 0x8000, description: 'Rackwright' }],
    menuPrompt: { timeoutSeconds: 0, prompt: 'Rackwright' },
    others: [],
  });
});

test('the choice of EDK2 on port 4011 is acknowledged to the port that it came from', () => {
  const { packet, to } = reply(packetOf('edk2PxeRequest'), 'runner', 'pxe', leased);
  expect(to).toEqual(leased);
  expect(packet).toMatchObject({
    clientAddress: '10.78.0.135',
    yourAddress: '0.0.0.0',
    bootFile: `${mac}/snponly.efi`,
  });
  expect(readOption(packet, dhcpOption.messageType)).toBe('ack');
  expect(readOption(packet, dhcpOption.pxe)?.bootItem).toEqual({ type: 0x8000, layer: 0 });
});

test('the proxy offers UEFI HTTP boot a URL under the class HTTPClient', () => {
  const { packet } = reply(packetOf('edk2HttpDiscover'));
  const url = `http://10.78.0.1:8080/boot/${mac}/files/snponly.efi`;
  expect(readOption(packet, dhcpOption.vendorClass)).toBe('HTTPClient');
  expect(readOption(packet, dhcpOption.bootFileName)).toBe(url);
  expect(packet.bootFile).toBe(url);
  expect(packet.options.has(43)).toBe(false);
});

test('the proxy gives plain PXE firmware for BIOS its own loader', () => {
  const bios = withOption(packetOf('edk2PxeDiscover'), writeOption(dhcpOption.architectures, [0]));
  expect(reply(bios).packet.bootFile).toBe(`${mac}/undionly.kpxe`);
});

test('the proxy repeats the identifiers of client, machine and relay, the relay’s last', () => {
  const relayed = withOption(
    packetOf('ipxeRomDiscover'),
    writeOption(dhcpOption.relayAgent, [[1, Uint8Array.of(7)]]),
  );
  const { options } = reply(relayed).packet;
  for (const code of [61, 82, 97]) expect(options.get(code)).toEqual(relayed.options.get(code));
  expect([...options.keys()].at(-1)).toBe(82);
});

test('the proxy answers through the relay when there is one', () => {
  const packet = { ...packetOf('edk2PxeDiscover'), relayAddress: '10.9.0.1' };
  expect(reply(packet).to).toEqual({ address: '10.9.0.1', port: 67 });
});

describe('without a boot grant', () => {
  test('plain PXE firmware gets silence, on both ports', () => {
    expect(answer(packetOf('edk2PxeDiscover'), 'localBoot').kind).toBe('silence');
    expect(answer(packetOf('edk2PxeRequest'), 'localBoot', 'pxe', leased).kind).toBe('silence');
  });

  test('iPXE gets its script, which sends it to the disk', () => {
    const { packet } = reply(packetOf('chainedIpxeDiscover'), 'localBoot');
    expect(packet.bootFile).toMatch(/script\.ipxe$/);
  });

  test('UEFI HTTP boot gets the loader that runs the script', () => {
    const { packet } = reply(packetOf('edk2HttpDiscover'), 'localBoot');
    expect(packet.bootFile).toMatch(/snponly\.efi$/);
  });
});

test('U-Boot, which hears no proxy, gets silence that says so', () => {
  const reason = expect.stringContaining('U-Boot hears no DHCP proxy');
  expect(answer(packetOf('uBootDiscover'))).toEqual({ kind: 'silence', reason });
  for (const permission of ['localBoot', 'unknownHost'] as const) {
    const silence = answer(packetOf('uBootDiscover'), permission);
    expect(silence).toMatchObject({ kind: 'silence' });
    expect(silence).not.toEqual({ kind: 'silence', reason });
  }
});

test('the proxy does not answer unknown hosts', () => {
  for (const name of ['ipxeRomDiscover', 'edk2PxeDiscover', 'edk2HttpDiscover'] as const) {
    expect(answer(packetOf(name), 'unknownHost')).toMatchObject({ reason: 'unknown host' });
  }
});

test.each<[string, DhcpPacket, ProxyService, RegExp]>([
  ['a reply', { ...packetOf('edk2PxeDiscover'), op: 'reply' }, 'dhcp', /a reply/],
  ['a request on the DHCP port', packetOf('edk2PxeRequest'), 'dhcp', /request on the dhcp/],
  ['a discover on the PXE port', packetOf('edk2PxeDiscover'), 'pxe', /discover on the pxe/],
  [
    'another kind of network',
    { ...packetOf('edk2PxeDiscover'), hardwareType: 32 },
    'dhcp',
    /not Ethernet/,
  ],
  [
    'a machine that only wants an address',
    withOption(packetOf('edk2PxeDiscover'), writeOption(dhcpOption.vendorClass, 'MSFT 5.0')),
    'dhcp',
    /no boot client/,
  ],
  [
    'a malformed message type',
    withOption(packetOf('edk2PxeDiscover'), [53, Uint8Array.of(1, 1)]),
    'dhcp',
    /option 53/,
  ],
  [
    'an architecture without a loader',
    withOption(packetOf('edk2PxeDiscover'), writeOption(dhcpOption.architectures, [27])),
    'dhcp',
    /no boot loader/,
  ],
  [
    'the choice of another server',
    withOption(
      packetOf('edk2PxeRequest'),
      writeOption(dhcpOption.pxe, { bootItem: { type: 1, layer: 0 }, others: [] }),
    ),
    'pxe',
    /boot server type 1/,
  ],
  [
    'identifiers that would not fit the answer',
    withOption(packetOf('edk2PxeDiscover'), [61, new Uint8Array(600)]),
    'dhcp',
    /identifiers of 617 bytes/,
  ],
])('the proxy says nothing to %s', (_name, packet, service, reason) => {
  const answered = answer(packet, 'runner', service, leased);
  expect(answered.kind === 'silence' && answered.reason).toMatch(reason);
});

test('the proxy answers a request of BOOTP, without a message type, with silence', () => {
  const packet = { ...packetOf('edk2PxeDiscover'), options: new Map() };
  expect(answer(packet)).toMatchObject({ kind: 'silence', reason: 'BOOTP on the dhcp port' });
});

test('every answer to anything fits a frame and assigns no address', () => {
  const names = [
    'ipxeRomDiscover',
    'edk2PxeDiscover',
    'edk2PxeRequest',
    'edk2HttpDiscover',
  ] as const;
  const option = fc.tuple(
    fc.integer({ min: 1, max: 254 }).filter((code) => code !== 52),
    fc.uint8Array({ maxLength: 600 }),
  );
  const service = fc.constantFrom<ProxyService>('dhcp', 'pxe');
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.array(option), service, (name, extra, port) => {
      const packet = packetOf(name);
      const options = new Map([...packet.options, ...extra]);
      const answered = answer({ ...packet, options }, 'runner', port, leased);
      if (answered.kind === 'silence') return;
      expect(answered.packet.yourAddress).toBe('0.0.0.0');
      expect(encodeDhcp(answered.packet).length).toBeLessThanOrEqual(1_472);
    }),
    { numRuns: 500 },
  );
});
