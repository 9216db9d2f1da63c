/** A boot by GRUB over real sockets: its first script, the host's own, kernel and ramdisk. */
import { afterEach, describe, expect, test } from 'vitest';
import { fetchByTftp } from './test-clients.ts';
import { type BootRig, grantedMac, knownMac, startRig, unknownMac } from './test-rig.ts';

let rig: BootRig;

afterEach(async () => await rig.close());

/** What GRUB fetches by TFTP, as text. */
async function tftpText(name: string): Promise<string> {
  const options = [['blksize', '1024'] as const];
  return Buffer.from(await fetchByTftp(rig.services.tftpPort, name, options)).toString();
}

async function httpText(path: string): Promise<string> {
  return (await fetch(rig.url(path))).text();
}

function sameBytes(found: Uint8Array, name: string): boolean {
  return Buffer.compare(found, rig.contents[name] ?? Buffer.alloc(0)) === 0;
}

test('by TFTP alone a granted host comes from its first script to the last byte', async () => {
  rig = await startRig({});
  const start = await tftpText('/grub/x86_64-efi/grub.cfg');
  expect(start).toContain('set rackwright_from=(tftp,127.0.0.1)\n');
  const script = await tftpText(`/boot/${grantedMac}/grub.cfg`);
  expect(script).toContain("'rackwright.token=token-2'");
  const files = [...script.matchAll(/\$rackwright_from'([^']+)'/g)].map(([, path = '']) => path);
  expect(files.map((path) => path.split('/').at(-1))).toEqual(['vmlinuz', 'initrd']);
  for (const path of files) {
    const bytes = await fetchByTftp(rig.services.tftpPort, path, [['blksize', '1024']]);
    expect(sameBytes(bytes, path.split('/').at(-1) ?? '')).toBe(true);
  }
  const stages = rig.observed.map(({ stage }) => stage);
  expect([...new Set(stages)]).toEqual(['script', 'file']);
  expect(rig.observed.every(({ permitted, mac }) => permitted && mac === grantedMac)).toBe(true);
});

test('by HTTP the scripts are the same', async () => {
  rig = await startRig({});
  expect(await httpText('/grub/grub.cfg')).toBe(await tftpText('grub/grub.cfg'));
  expect(await httpText(`/boot/${grantedMac}/grub.cfg`)).toContain("'rackwright.token=token-2'");
});

describe.each([
  ['a host without a grant', knownMac, 'TFTP error 2: no boot grant'],
  ['a machine that nobody knows', unknownMac, 'TFTP error 1: unknown host'],
])('%s', (_, mac, text) => {
  test('gets neither kernel nor ramdisk by TFTP, nor a script that starts them', async () => {
    rig = await startRig({});
    for (const name of ['vmlinuz', 'initrd']) {
      await expect(tftpText(`/boot/${mac}/files/${name}`)).rejects.toThrow(text);
    }
    const script = await tftpText(`/boot/${mac}/grub.cfg`).catch(String);
    expect(script).not.toContain('linux');
    expect(script).toContain(mac === knownMac ? 'chainloader' : text);
  });
});

test('a file that is not listed is not found, whatever its name', async () => {
  rig = await startRig({});
  for (const name of ['none', '..', 'x/../vmlinuz']) {
    const asked = tftpText(`/boot/${grantedMac}/files/${name}`);
    await expect(asked).rejects.toThrow(/TFTP error 1/);
  }
});

test('a ramdisk that no memory was granted to is refused with words', async () => {
  const tftp = { address: '127.0.0.1', port: 0, keptFileBytesMax: 400_000 };
  rig = await startRig({ config: { tftp } });
  const path = (name: string) => `/boot/${grantedMac}/files/${name}`;
  expect((await tftpText(path('vmlinuz'))).length).toBeGreaterThan(0);
  await expect(tftpText(path('initrd'))).rejects.toThrow('too large for TFTP');
});
