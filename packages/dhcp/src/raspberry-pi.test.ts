import { describe, expect, test } from 'vitest';
import { answerBootRequest, readBootRequest } from './answer.ts';
import type { DhcpBootPermission } from './boot-parts.ts';
import { type BootClient, bootClient } from './client.ts';
import { macOf } from './identifiers.ts';
import { asMac } from './mac.ts';
import { dhcpOption, readOption, writeOption } from './options.ts';
import { type DhcpPacket, encodeDhcp } from './packet.ts';
import { isRaspberryPi } from './raspberry-pi.ts';
import {
  answerOf,
  planOf,
  serverAddress,
  settingsOf,
  TestSite,
  typeOf,
  usualPlan,
} from './server/test-site.ts';
import { SideOptions } from './side-options.ts';
import { piDiscover } from './test-raspberry-pi.ts';

const pi3 = 'b8:27:eb:28:f6:6d';
const pi4 = 'dc:a6:32:0a:ef:79';
const board = { kind: 'raspberryPi', platform: 'bios' };

function clientOf(packet: DhcpPacket): BootClient | undefined {
  return bootClient(new SideOptions(packet), macOf(packet));
}

function withOption(packet: DhcpPacket, option: readonly [number, Uint8Array]): DhcpPacket {
  return { ...packet, options: new Map([...packet.options, option]) };
}

test.each(['b8:27:eb', 'dc:a6:32', 'e4:5f:01', '28:cd:c1', 'd8:3a:dd', '2c:cf:67'])(
  'the firmware of a Raspberry Pi is known by its prefix %s',
  (prefix) => {
    expect(isRaspberryPi(asMac(`${prefix}:00:00:01`))).toBe(true);
    expect(clientOf(piDiscover(`${prefix}:00:00:01`))).toEqual(board);
  },
);

test('the detection takes another manufacturer’s BIOS machine for PXE firmware', () => {
  for (const mac of ['52:54:00:b8:27:eb', 'b8:27:ec:00:00:01', 'dc:a6:33:00:00:01']) {
    expect(isRaspberryPi(asMac(mac))).toBe(false);
    expect(clientOf(piDiscover(mac))).toEqual({ kind: 'pxe', platform: 'bios' });
  }
});

test('the programs that the firmware of a Raspberry Pi starts are known', () => {
  const arm64 = writeOption(dhcpOption.architectures, [11]);
  const uefi = withOption(piDiscover(pi4), arm64);
  expect(clientOf(uefi)).toEqual({ kind: 'pxe', platform: 'uefiArm64' });
  const http = writeOption(dhcpOption.vendorClass, 'HTTPClient:Arch:00019');
  const uefiHttp = withOption(withOption(uefi, http), writeOption(dhcpOption.architectures, [19]));
  expect(clientOf(uefiHttp)).toEqual({ kind: 'httpBoot', platform: 'uefiArm64' });
  const uBoot = writeOption(dhcpOption.vendorClass, 'U-Boot.armv8');
  expect(clientOf(withOption(piDiscover(pi4), uBoot))?.kind).toBe('uBoot');
  const ipxe = writeOption(dhcpOption.userClass, { form: 'plain', classes: ['iPXE'] });
  expect(clientOf(withOption(piDiscover(pi4), ipxe))?.kind).toBe('ipxe');
});

/** Option 43 of the documentation, and with three spaces more. */
const menu = '0601030a0400505845091400001152617370626572727920506920426f6f74ff';
const menuOfPi3 = '0601030a0400505845091700001452617370626572727920506920426f6f74202020ff';

function hexOf(packet: DhcpPacket, code: number): string {
  return Buffer.from(packet.options.get(code) ?? []).toString('hex');
}

const noAddressPlan = settingsOf(planOf(usualPlan));

function byProxy(
  packet: DhcpPacket,
  permission: DhcpBootPermission = 'runner',
  settings = noAddressPlan,
) {
  const asked = readBootRequest(packet, 'dhcp', { address: '0.0.0.0', port: 68 });
  if (asked.kind === 'silence') throw new Error(asked.reason);
  return answerBootRequest(asked.request, permission, settings);
}

describe.each([
  [pi3, menuOfPi3],
  [pi4, menu],
])('the offer to the firmware of %s', (mac, option43) => {
  test('by proxy names this server and the menu, and no boot file', () => {
    const answer = byProxy(piDiscover(mac));
    if (answer.kind !== 'reply') throw new Error(answer.reason);
    const { packet } = answer;
    expect(packet).toMatchObject({
      ...{ yourAddress: '0.0.0.0', nextServerAddress: serverAddress },
      ...{ bootFile: '', serverName: '' },
    });
    expect(hexOf(packet, 43)).toBe(option43);
    expect(readOption(packet, dhcpOption.vendorClass)).toBe('PXEClient');
    expect(readOption(packet, dhcpOption.tftpServerName)).toBe(serverAddress);
    expect(readOption(packet, dhcpOption.serverIdentifier)).toBe(serverAddress);
    expect(packet.options.get(97)).toEqual(piDiscover(mac).options.get(97));
    expect(packet.options.has(67)).toBe(false);
  });

  test('with an address says the same', () => {
    const site = new TestSite(usualPlan, [mac]);
    site.permission = 'runner';
    const packet = answerOf(site.hear(piDiscover(mac)));
    expect(typeOf(packet)).toBe('offer');
    expect(packet.yourAddress).toMatch(/^10\.77\.0\.5\d$/);
    expect(packet).toMatchObject({ nextServerAddress: serverAddress, bootFile: '' });
    expect(hexOf(packet, 43)).toBe(option43);
    expect(readOption(packet, dhcpOption.tftpServerName)).toBe(serverAddress);
    expect(packet.options.has(67)).toBe(false);
  });

  test('has no padding between its options, and no text that ends with a zero', () => {
    const site = new TestSite(usualPlan, [mac]);
    site.permission = 'runner';
    const bytes = encodeDhcp(answerOf(site.hear(piDiscover(mac))));
    let at = 240;
    while (bytes[at] !== 255) {
      expect(bytes[at]).not.toBe(0);
      at += 2 + (bytes[at + 1] ?? 0);
    }
    expect(at).toBeLessThan(bytes.length);
    expect(hexOf(answerOf(site.hear(piDiscover(mac))), 66)).toBe(
      Buffer.from(serverAddress).toString('hex'),
    );
  });
});

test.each(['localBoot', 'unknownHost'] as const)(
  'with the permission %s the firmware of a Raspberry Pi gets no boot',
  (permission) => {
    expect(byProxy(piDiscover(pi4), permission).kind).toBe('silence');
    const site = new TestSite(usualPlan, [pi4]);
    site.permission = permission;
    const offer = answerOf(site.hear(piDiscover(pi4)));
    expect(offer).toMatchObject({ nextServerAddress: '0.0.0.0', bootFile: '' });
    for (const code of [43, 60, 66]) expect(offer.options.has(code)).toBe(false);
  },
);

test('without files for it the firmware of a Raspberry Pi is answered as that of a BIOS', () => {
  const settings = { ...noAddressPlan, servesRaspberryPi: false };
  const answer = byProxy(piDiscover(pi4), 'runner', settings);
  expect(answer).toMatchObject({ packet: { bootFile: `${pi4}/undionly.kpxe` } });
});
