import { describe, expect, test } from 'vitest';
import { dhcpOption, readOption, writeOption } from '../options.ts';
import { type DhcpPacket, decodeDhcp } from '../packet.ts';
import { captures } from '../test-captures.ts';
import { answerOf, serverAddress, TestSite, typeOf, usualPlan } from './test-site.ts';

const mac = '52:54:00:78:00:01';

function siteWith(permission: TestSite['permission'], known = [mac]): TestSite {
  const site = new TestSite(usualPlan, known);
  site.permission = permission;
  return site;
}

/** The firmware's request for the offered address. */
function choose(discover: DhcpPacket, address: string): DhcpPacket {
  const options = new Map([
    ...discover.options,
    writeOption(dhcpOption.messageType, 'request'),
    writeOption(dhcpOption.requestedAddress, address),
    writeOption(dhcpOption.serverIdentifier, serverAddress),
  ]);
  return { ...discover, options };
}

describe('address and boot in one answer', () => {
  test.each([
    ['ipxeRomDiscover', `http://10.77.0.1:8080/boot/${mac}/script.ipxe`, 'PXEClient'],
    ['edk2PxeDiscover', `${mac}/snponly.efi`, 'PXEClient'],
    ['edk2HttpDiscover', `http://10.77.0.1:8080/boot/${mac}/files/snponly.efi`, 'HTTPClient'],
  ] as const)(
    'a %s is answered with address and boot in the offer, and again in the acknowledgement',
    (name, file, vendorClass) => {
      const site = siteWith('runner');
      const discover = decodeDhcp(captures[name]);
      const offer = answerOf(site.hear(discover));
      const ack = answerOf(site.hear(choose(discover, offer.yourAddress)));
      expect([typeOf(offer), typeOf(ack)]).toEqual(['offer', 'ack']);
      for (const packet of [offer, ack]) {
        expect(packet.yourAddress).toBe(offer.yourAddress);
        expect(packet).toMatchObject({ bootFile: file, nextServerAddress: serverAddress });
        expect(readOption(packet, dhcpOption.vendorClass)).toBe(vendorClass);
        expect(readOption(packet, dhcpOption.leaseSeconds)).toBe(3_600);
        expect(packet.options.get(97)).toEqual(discover.options.get(97));
      }
      const url = vendorClass === 'HTTPClient' ? file : undefined;
      expect(readOption(offer, dhcpOption.bootFileName)).toBe(url);
    },
  );

  test('keeps one address from the firmware through iPXE to the ramdisk', () => {
    const site = siteWith('runner');
    const names = ['edk2PxeDiscover', 'chainedIpxeDiscover', 'edk2HttpDiscover'] as const;
    const addresses = names.map((name) => {
      const discover = decodeDhcp(captures[name]);
      const { yourAddress } = answerOf(site.hear(discover));
      return answerOf(site.hear(choose(discover, yourAddress))).yourAddress;
    });
    expect(new Set([...addresses, site.lease(mac)]).size).toBe(1);
  });
});

describe('U-Boot', () => {
  const uBoot = '52:52:52:52:52:52';
  const discover = decodeDhcp(captures.uBootDiscover);

  test('gets the server and the name of its script with its address, in the header alone', () => {
    const site = siteWith('runner', [uBoot]);
    const offer = answerOf(site.hear(discover));
    const ack = answerOf(site.hear(choose(discover, offer.yourAddress)));
    expect([typeOf(offer), typeOf(ack)]).toEqual(['offer', 'ack']);
    for (const packet of [offer, ack]) {
      expect(packet).toMatchObject({ bootFile: 'boot.scr.uimg', nextServerAddress: serverAddress });
      for (const code of [43, 60, 66, 67]) expect(packet.options.has(code)).toBe(false);
    }
  });

  test.each(['localBoot', 'unknownHost'] as const)(
    'gets no server with the permission %s, and so goes on to its disk',
    (permission) => {
      const offer = answerOf(siteWith(permission, [uBoot]).hear(discover));
      expect(offer).toMatchObject({ bootFile: '', nextServerAddress: '0.0.0.0' });
      expect(offer.yourAddress).toMatch(/^10\.77\.0\./);
    },
  );
});

test('without a grant plain PXE firmware gets an address and nothing to boot', () => {
  const offer = answerOf(siteWith('localBoot').hear(decodeDhcp(captures.edk2PxeDiscover)));
  expect(offer).toMatchObject({ bootFile: '', nextServerAddress: '0.0.0.0' });
  for (const code of [43, 60, 67]) expect(offer.options.has(code)).toBe(false);
});

test('without a grant iPXE gets the script that sends it to its disk', () => {
  const offer = answerOf(siteWith('localBoot').hear(decodeDhcp(captures.chainedIpxeDiscover)));
  expect(offer.bootFile).toMatch(/script\.ipxe$/);
});

test('a stranger in discovery gets an address and nothing to boot', () => {
  const site = siteWith('unknownHost', []);
  const offer = answerOf(site.hear(decodeDhcp(captures.ipxeRomDiscover)));
  expect(offer.yourAddress).toMatch(/^10\.77\.0\.20/);
  expect(offer.bootFile).toBe('');
});
