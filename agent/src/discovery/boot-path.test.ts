/** Machines that are no hosts on the real boot path: DHCP, TFTP and HTTP on loopback. */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, expect, test } from 'vitest';
import {
  discover,
  fetchByTftp,
  type Mailbox,
  openMailbox,
  relayedDiscover,
} from '../boot/test-clients.ts';
import { type BootRig, grantedMac, knownMac, startRig, unknownMac } from '../boot/test-rig.ts';
import { AgentDiscovery } from './discovery.ts';

const bootsMax = 8;
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Site {
  readonly rig: BootRig;
  readonly mailbox: Mailbox;
  readonly dhcpPort: number;
  readonly discovery: AgentDiscovery;
  script(mac: string): Promise<string>;
}

async function startSite(): Promise<Site> {
  const mailbox = await openMailbox();
  const discovery = new AgentDiscovery({
    ...{ clock: nodeClock(), random: nodeRandom(), log: quietLog },
    report: () => undefined,
  });
  const policy = { generation: 1n, enabled: true, bootsMax, bootsPerHourMax: 100 };
  discovery.replace(create(agent.DiscoverySchema, policy));
  const rig = await startRig({ relayPort: mailbox.port, discovery });
  closers.push(
    () => rig.close(),
    () => mailbox.close(),
  );
  const { dhcpPort = 0 } = rig.services;
  // A machine closes its connection, and has an address of its own; here all have one.
  const script = async (mac: string) => {
    const headers = { connection: 'close' };
    return await (await fetch(rig.url(`/boot/${mac}/script.ipxe`), { headers })).text();
  };
  return { rig, mailbox, dhcpPort, discovery, script };
}

function macOf(n: number): string {
  const pair = (byte: number) => byte.toString(16).padStart(2, '0');
  return `52:54:00:bb:${pair(n >> 8)}:${pair(n & 255)}`;
}

test('a machine that is no host boots, with any firmware, once it asks for a script', async () => {
  const { rig, mailbox, dhcpPort, discovery, script } = await startSite();
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(unknownMac, 7));
  expect(await fetchByTftp(rig.services.tftpPort, offer.bootFile)).toHaveLength(170_000);
  const byHttp = await discover(mailbox, dhcpPort, relayedDiscover(macOf(1), 16));
  expect(byHttp.options.size).toBeGreaterThan(2);
  expect((await fetch(rig.url(`/boot/${macOf(1)}/files/snponly.efi`))).status).toBe(200);
  expect((await fetch(rig.url(`/boot/${macOf(1)}/files/vmlinuz`))).status).toBe(403);
  expect(discovery.memory()?.boots.size, 'an offer and a loader open nothing').toBe(0);

  const first = await script(unknownMac);
  expect(first).toMatch(/rackwright\.token=[0-9a-f]{32} /);
  expect(first).toContain('a machine that is no host starts the runner');
  expect(await script(unknownMac)).toContain(/rackwright\.token=\w+/.exec(first)?.[0] ?? '?');
  expect((await fetch(rig.url(`/boot/${unknownMac}/files/vmlinuz`))).status).toBe(200);
  expect(discovery.memory()?.boots.size).toBe(1);
  expect(rig.observed.every((each) => each.hostUid === undefined)).toBe(true);
});

test('a machine that was found already boots its disk when it netboots again', async () => {
  const { mailbox, dhcpPort, discovery, script, rig } = await startSite();
  await script(unknownMac);
  const [boot] = discovery.memory()?.boots.values() ?? [];
  discovery.bind(boot?.operationId ?? '', Uint8Array.of(1));
  const again = await script(unknownMac);
  expect(again).toMatch(/exit 1\n$/);
  expect(again).not.toContain('kernel');
  mailbox.send(relayedDiscover(unknownMac, 7), dhcpPort);
  await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  expect(await mailbox.next(50), 'plain PXE firmware hears nothing').toBeUndefined();
  expect(rig.observed.at(-2)).toMatchObject({ mac: unknownMac, permitted: false });
});

test('a flood of invented machines opens few boots and does not affect hosts', async () => {
  const { rig, mailbox, dhcpPort, discovery, script } = await startSite();
  for (let n = 0; n < 400; n += 1) mailbox.send(relayedDiscover(macOf(n), 7), dhcpPort);
  const scripts: string[] = [];
  for (let from = 0; from < 200; from += 20) {
    const some = Array.from({ length: 20 }, (_, n) => script(macOf(from + n)));
    scripts.push(...(await Promise.all(some)));
  }
  expect(scripts.filter((text) => text.includes('kernel'))).toHaveLength(bootsMax);
  expect(discovery.memory()?.boots.size).toBe(bootsMax);
  expect(await script(grantedMac)).toContain('rackwright.token=token-2');
  expect(await script(knownMac)).toMatch(/exit 1\n$/);
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  expect(await fetchByTftp(rig.services.tftpPort, offer.bootFile)).toHaveLength(170_000);
});
