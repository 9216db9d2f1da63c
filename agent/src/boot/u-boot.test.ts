/** A boot by U-Boot over real sockets: its script, its host's configuration, kernel and ramdisk. */
import { decodePacket } from '@rackwright/tftp';
import { afterEach, expect, test } from 'vitest';
import { fetchByTftp, openMailbox, uBootDiscover } from './test-clients.ts';
import { type BootRig, grantedMac, knownMac, startRig, unknownMac } from './test-rig.ts';

let rig: BootRig;

afterEach(async () => await rig.close());

/** The options that U-Boot 2023.01 asks with. */
const options = [['timeout', '5'] as const, ['blksize', '1468'] as const];

async function bytesOf(name: string): Promise<Uint8Array> {
  return fetchByTftp(rig.services.tftpPort, name, options);
}

const textOf = async (name: string) => Buffer.from(await bytesOf(name)).toString();

function configurationOf(mac: string): string {
  return `pxelinux.cfg/01-${mac.replaceAll(':', '-')}`;
}

test('by TFTP alone a granted host comes from its script to the last byte', async () => {
  rig = await startRig({});
  expect(await textOf('boot.scr.uimg')).toContain('while pxe get; do\n  pxe boot\n');
  expect(rig.observed).toEqual([]);
  const configuration = await textOf(configurationOf(grantedMac));
  expect(configuration).toMatch(/\n {2}append .* rackwright\.token=token-2 /);
  const files = [...configuration.matchAll(/^ {2}(?:kernel|initrd) (\S+)$/gm)];
  expect(files).toHaveLength(2);
  for (const [, path = ''] of files) {
    const content = rig.contents[path.split('/').at(-1) ?? ''] ?? Buffer.alloc(0);
    expect(Buffer.compare(await bytesOf(path), content)).toBe(0);
  }
  expect([...new Set(rig.observed.map(({ stage }) => stage))]).toEqual(['script', 'file']);
  expect(rig.observed.every(({ permitted, mac }) => permitted && mac === grantedMac)).toBe(true);
  const came = rig.bootEvents.filter(({ kind: what }) => what === 'came').map(({ stage }) => stage);
  expect(new Set(came)).toEqual(new Set(['script', 'kernel', 'initrd']));
});

test.each([
  ['a host without a grant', knownMac, 'TFTP error 1: no such file'],
  ['a machine that nobody knows', unknownMac, 'TFTP error 1: unknown host'],
])('%s has no configuration', async (_, mac, text) => {
  rig = await startRig({});
  await expect(textOf(configurationOf(mac))).rejects.toThrow(text);
  expect(rig.observed).toMatchObject([{ mac, stage: 'script', permitted: false }]);
});

test('the names that U-Boot tries next are not found, whoever has a grant', async () => {
  rig = await startRig({});
  const names = ['6f1b2c3d-4e5f-4a6b-8c7d-000000000001', '0A4D0064', '0', 'default-arm', 'default'];
  for (const name of names) {
    await expect(textOf(`pxelinux.cfg/${name}`)).rejects.toThrow('TFTP error 1: no such file');
  }
});

test('a machine that is no host gets a configuration while discovery is on', async () => {
  const limits = { bootsMax: 1, bootsPerHourMax: 1, spacingMs: 1_000 };
  const opened: string[] = [];
  const discovery = {
    memory: () => ({ limits, boots: new Map() }),
    open: (mac: string) => void opened.push(mac),
  };
  rig = await startRig({ discovery });
  // Nobody has opened it: the rig only writes down that it was asked to.
  await expect(textOf(configurationOf(unknownMac))).rejects.toThrow('no such file');
  expect(opened).toEqual([unknownMac]);
});

test('the very request of U-Boot 2023.01 is answered with its options', async () => {
  rig = await startRig({});
  const mailbox = await openMailbox();
  const captured = '\0\x01boot.scr.uimg\0octet\0timeout\x005\0blksize\x001468\0';
  mailbox.send(Buffer.from(captured, 'latin1'), rig.services.tftpPort);
  const answer = await mailbox.next(1_000);
  expect(answer && decodePacket(answer.datagram)).toEqual({ kind: 'optionAck', options });
  mailbox.close();
});

test('in proxy mode U-Boot is not answered, and the trace of its boot says why', async () => {
  const relay = await openMailbox();
  rig = await startRig({ relayPort: relay.port });
  relay.send(uBootDiscover(grantedMac), rig.services.dhcpPort ?? 0);
  expect(await relay.next(300)).toBeUndefined();
  relay.close();
  const problem = expect.stringContaining('U-Boot hears no DHCP proxy');
  expect(rig.bootEvents).toMatchObject([
    { stage: 'discover', program: 'firmware', kind: 'came', problem },
  ]);
});
