/** A boot of a Raspberry Pi's firmware over real sockets, by DHCP and TFTP. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asMac, decodeDhcp, dhcpOption, encodeDhcp, readOption } from '@rackwright/dhcp';
import { decodePacket, encodePacket } from '@rackwright/tftp';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { TestClock } from '../session/testing/clock.ts';
import type { BootConfig } from './config.ts';
import type { ReservationDhcpConfig } from './dhcp-config.ts';
import { RaspberryPiRequests } from './raspberry-pi.ts';
import {
  discover,
  fetchByTftp,
  type Mailbox,
  openMailbox,
  relayedDiscover,
} from './test-clients.ts';
import { type BootRig, loopbackDhcp, startRig } from './test-rig.ts';

const mac = 'dc:a6:32:0a:ef:79';
const strange = 'dc:a6:32:00:00:99';
const folderOf = (one: string) => one.replaceAll(':', '-');
const serial = '360aef79';
const bytesOf: Readonly<Record<string, string>> = {
  'start4.elf': 'the firmware '.repeat(400),
  'config.txt': 'kernel=u-boot.bin\n',
  'overlays/miniuart-bt.dtbo': 'an overlay',
};

let folder: string;
let raspberryPi: { files: { name: string; path: string }[]; fileBytesMax?: number };
const closers: (() => void | Promise<void>)[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-pi-'));
  writeFileSync(join(folder, 'identity.json'), 'the secret that lies beside the files');
  const files = Object.entries(bytesOf).map(([name, text]) => {
    const path = join(folder, name.replace('/', '-'));
    writeFileSync(path, text);
    return { name, path };
  });
  raspberryPi = { files };
});

afterAll(() => rmSync(folder, { recursive: true }));

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function rigWith(
  config: Partial<BootConfig> = { raspberryPi },
  more: Partial<Parameters<typeof startRig>[0]> = {},
): Promise<BootRig> {
  const rig = await startRig({ grantedMac: mac, config, ...more });
  closers.push(rig.close);
  return rig;
}

const fetched = async (rig: BootRig, name: string) =>
  Buffer.from(await fetchByTftp(rig.services.tftpPort, name)).toString();

const refusals = ({ lines }: BootRig) => lines.filter((line) => line.includes('TFTP request'));

describe('by TFTP', () => {
  const folders = ['', '/', `${serial}/`, '00000000360AEF79/', `${folderOf(mac)}/`];

  test.each([...folders, `/${serial}//`, `${folderOf(strange)}/`])(
    'the files come by their names behind %j',
    async (before) => {
      const rig = await rigWith();
      for (const [name, text] of Object.entries(bytesOf)) {
        expect(await fetched(rig, `${before}${name}`)).toBe(text);
      }
      expect([rig.observed, rig.bootEvents]).toEqual([[], []]);
    },
  );

  test('a file that is not listed is not found, without a line in the log', async () => {
    const rig = await rigWith();
    const names = ['pieeprom.sig', 'recover4.elf', 'bootsig.bin', 'overlays/x.dtbo', 'dt-blob.bin'];
    for (const name of [...names, ...names.map((one) => `${serial}/${one}`), `${serial}/any`]) {
      await expect(fetched(rig, name), name).rejects.toThrow('TFTP error 1: no such file');
    }
    await expect(fetched(rig, `${folderOf(mac)}/pieeprom.sig`)).rejects.toThrow('no such file');
    expect(refusals(rig)).toEqual([]);
    expect(rig.observed).toEqual([]);
  });

  test('other names are refused as before, with a line', async () => {
    const rig = await rigWith();
    await expect(fetched(rig, 'typo.efi')).rejects.toThrow('no such file');
    await expect(fetched(rig, '52-54-00-77-00-99/config.sig')).rejects.toThrow('unknown host');
    expect(refusals(rig)).toHaveLength(2);
    expect(await fetched(rig, `${folderOf(mac)}/undionly.kpxe`)).toHaveLength(
      Buffer.from(rig.contents['undionly.kpxe'] ?? []).toString().length,
    );
  });

  test('a rack without such files finds none, and says so', async () => {
    const rig = await rigWith({});
    await expect(fetched(rig, `${serial}/start4.elf`)).rejects.toThrow('no such file');
    expect(refusals(rig)).toHaveLength(1);
  });

  test('several requests for one file are answered, and an early end is no fault', async () => {
    const rig = await rigWith();
    const fileName = `${folderOf(mac)}/start4.elf`;
    const request = encodePacket({
      ...{ kind: 'readRequest', fileName, mode: 'octet' },
      options: [['tsize', '0']],
    });
    for (let again = 0; again < 3; again += 1) {
      const mailbox = await openMailbox();
      mailbox.send(request, rig.services.tftpPort);
      const answer = await mailbox.next(1_000);
      if (answer === undefined) throw new Error('no answer');
      expect(decodePacket(answer.datagram)).toEqual({
        kind: 'optionAck',
        options: [['tsize', '5200']],
      });
      const end = encodePacket({ kind: 'error', code: 0, message: 'Early terminate' });
      mailbox.send(end, answer.from.port);
      mailbox.close();
    }
    expect(await fetched(rig, fileName)).toBe(bytesOf['start4.elf']);
    await expect.poll(() => rig.services.transfers()).toBe(0);
    expect([refusals(rig), rig.bootEvents]).toEqual([[], []]);
  });
});

describe('hostile names', () => {
  const ups = '../'.repeat(8);
  test.each([
    'identity.json',
    '../identity.json',
    `${serial}/../identity.json`,
    `${serial}/${ups}etc/passwd`,
    `${serial}//etc/passwd`,
    `${serial}/overlays/../identity.json`,
    `${serial}/${serial}/config.txt`,
    `${folderOf(mac)}/${serial}/../config.txt`,
    `${folderOf(mac)}/../identity.json`,
    'overlays/../config.txt',
    '360aef7/config.txt',
    '360aef790/config.txt',
    'config.txt/',
    'config.txt/..',
    '..\\identity.json',
    '__proto__',
    `${serial}/__proto__`,
    `${serial}/constructor`,
    `${serial}/`,
    '',
  ])('%j is not found', async (name) => {
    const rig = await rigWith();
    await expect(fetched(rig, name)).rejects.toThrow('TFTP error 1');
  });
});

test('the agent does not start without one of the files, or beyond their bytes', async () => {
  const gone = { name: 'fixup4.dat', path: join(folder, 'gone') };
  await expect(rigWith({ raspberryPi: { files: [gone] } })).rejects.toThrow(
    `boot file fixup4.dat is missing at ${gone.path}`,
  );
  await expect(rigWith({ raspberryPi: { ...raspberryPi, fileBytesMax: 5_210 } })).rejects.toThrow(
    'files for a Raspberry Pi up to config.txt have 5218 bytes, limit 5210',
  );
});

/** The firmware's REQUEST after its DISCOVER: nothing in it says that it is firmware. */
function requestAfter(discovered: Uint8Array, address: string, transactionId?: number): Uint8Array {
  const packet = decodeDhcp(discovered);
  const options = new Map([
    [53, Uint8Array.of(3)],
    [50, Uint8Array.from(address.split('.').map(Number))],
    [54, Uint8Array.of(127, 0, 0, 1)],
    [55, Uint8Array.of(43, 60, 67, 66, 1, 3)],
  ]);
  return encodeDhcp({
    ...packet,
    options,
    transactionId: transactionId ?? packet.transactionId,
  });
}

function reservationDhcp(relayPort: number): ReservationDhcpConfig {
  return {
    ...loopbackDhcp(relayPort),
    mode: 'reservation',
    broadcastAddress: '127.255.255.255',
    subnet: { network: '127.0.0.0/8', routers: [], dnsServers: [], leaseSeconds: 600 },
    reservations: [{ mac: asMac(mac), address: '127.77.0.50' }],
    declinedMs: 60_000,
    otherServer: { quietMs: 60_000, probeMs: 0 },
    leasesPath: join(folder, `leases-${performance.now()}`),
  };
}

async function openDhcp(
  mode: 'proxy' | 'reservation',
  config?: Partial<BootConfig>,
): Promise<{ rig: BootRig; relay: Mailbox; port: number }> {
  const relay = await openMailbox();
  closers.push(relay.close);
  const dhcp = mode === 'proxy' ? loopbackDhcp(relay.port) : reservationDhcp(relay.port);
  const rig = await rigWith(config, { interface: { dhcp } });
  return { rig, relay, port: rig.services.dhcpPort ?? 0 };
}

describe('by DHCP', () => {
  const asked = relayedDiscover(mac, 0);

  test.each(['proxy', 'reservation'] as const)(
    'in mode %s the firmware gets this server and its menu',
    async (mode) => {
      const { rig, relay, port } = await openDhcp(mode);
      const offer = await discover(relay, port, asked);
      expect(offer).toMatchObject({
        yourAddress: mode === 'proxy' ? '0.0.0.0' : '127.77.0.50',
        ...{ nextServerAddress: '127.0.0.1', bootFile: '' },
      });
      expect(readOption(offer, dhcpOption.tftpServerName)).toBe('127.0.0.1');
      expect(readOption(offer, dhcpOption.pxe)?.bootMenu).toEqual([
        { type: 0, description: 'Raspberry Pi Boot' },
      ]);
      expect(rig.observed).toMatchObject([{ mac, stage: 'dhcp', permitted: true }]);
    },
  );

  test('without files it is a BIOS machine, and its REQUEST is a system’s', async () => {
    const { rig, relay, port } = await openDhcp('reservation', {});
    const offer = await discover(relay, port, asked);
    expect(offer.bootFile).toBe(`${folderOf(mac)}/undionly.kpxe`);
    await discover(relay, port, requestAfter(asked, offer.yourAddress));
    expect(rig.requests).toEqual(['u2']);
  });

  test('its REQUEST gets its address and its boot, and is one of the firmware', async () => {
    const { rig, relay, port } = await openDhcp('reservation');
    for (let boot = 1; boot <= 2; boot += 1) {
      const offer = await discover(relay, port, asked);
      const ack = await discover(relay, port, requestAfter(asked, offer.yourAddress));
      expect(readOption(ack, dhcpOption.messageType)).toBe('ack');
      expect(ack).toMatchObject({ yourAddress: '127.77.0.50', nextServerAddress: '127.0.0.1' });
      expect(readOption(ack, dhcpOption.tftpServerName)).toBe('127.0.0.1');
    }
    expect(rig.requests).toEqual([]);
    expect(new Set(rig.bootEvents.map(({ program }) => program))).toEqual(new Set(['firmware']));
    expect(rig.observed).toHaveLength(2);
    // The same bytes in another transaction are the system's.
    const ack = await discover(relay, port, requestAfter(asked, '127.77.0.50', 99));
    expect(ack).toMatchObject({ yourAddress: '127.77.0.50', nextServerAddress: '0.0.0.0' });
    expect(rig.requests).toEqual(['u2']);
    expect(rig.bootEvents.at(-1)).toMatchObject({ stage: 'ack', program: 'system' });
  });

  test('in proxy mode its REQUEST to the site’s server is none of the system', async () => {
    const { rig, relay, port } = await openDhcp('proxy');
    await discover(relay, port, asked);
    relay.send(requestAfter(asked, '10.0.0.7'), port);
    // The answer to another question proves that the one before it was heard.
    await discover(relay, port, asked);
    expect(rig.requests).toEqual([]);
    relay.send(requestAfter(asked, '10.0.0.7', 99), port);
    await discover(relay, port, asked);
    expect(rig.requests).toEqual(['u2']);
  });
});

test('a request long after the firmware’s DISCOVER is one of the system', async () => {
  const time = new TestClock();
  const requests = new RaspberryPiRequests(time.open().clock);
  const packet = decodeDhcp(requestAfter(relayedDiscover(mac, 0), '10.0.0.7'));
  const server = '10.0.0.1';
  const request = {
    ...{ packet, from: { address: '0.0.0.0', port: 68 }, mac: asMac(mac) },
    question: { kind: 'selecting', server, address: '10.0.0.7' } as const,
    ...{ boot: undefined, ignored: [] },
  };
  expect(requests.recognise(request).boot).toBeUndefined();
  requests.discovered(asMac(mac), packet.transactionId);
  expect(requests.recognise(request).boot?.client.kind).toBe('raspberryPi');
  await time.run(60_001);
  expect(requests.recognise(request).boot).toBeUndefined();
});
