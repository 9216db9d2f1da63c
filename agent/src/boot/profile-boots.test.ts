/**
 * Boot profiles over real sockets: the boot of a host with its own profile, and with an unknown
 * one.
 */
import { afterEach, expect, test } from 'vitest';
import { discover, openMailbox, relayedDiscover } from './test-clients.ts';
import { type BootRig, grantedMac, startRig } from './test-rig.ts';

let rig: BootRig;

afterEach(async () => await rig.close());

async function rigBy(grantedProfile: string) {
  const mailbox = await openMailbox();
  const profile = {
    name: 'serial',
    loaders: { uefiX64: 'undionly.kpxe' },
    kernelArguments: ['console=ttyS1,115200'],
    firmware: 'uefi',
  } as const;
  const config = { bootProfiles: [profile] };
  rig = await startRig({ grantedProfile, config, relayPort: mailbox.port });
  const dhcpPort = rig.services.dhcpPort ?? 0;
  return { mailbox, dhcpPort };
}

const scripts = ['script.ipxe', 'grub.cfg'].map((name) => `/boot/${grantedMac}/${name}`);

test('a host gets the loader of its profile, and its kernel the words of it', async () => {
  const { mailbox, dhcpPort } = await rigBy('serial');
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  expect(offer.bootFile).toBe('52-54-00-77-00-02/undionly.kpxe');
  for (const path of scripts) {
    const script = await (await fetch(rig.url(path))).text();
    expect(script, path).toMatch(/console=ttyS0'? '?console=ttyS1,115200/);
  }
  mailbox.close();
});

test('a host by a profile that is not configured gets neither loader nor script', async () => {
  const { mailbox, dhcpPort } = await rigBy('other');
  mailbox.send(relayedDiscover(grantedMac, 7), dhcpPort);
  expect(await mailbox.next(200)).toBeUndefined();
  for (const path of scripts) expect((await fetch(rig.url(path))).status, path).toBe(500);
  expect(rig.lines.filter((line) => line.includes('label boot is "other"'))).toHaveLength(2);
  mailbox.close();
});
