import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { decodePacket, encodePacket } from '@rackwright/tftp';
import { afterEach, expect, test } from 'vitest';
import { discover, fetchByTftp, openMailbox, relayedDiscover } from './test-clients.ts';
import { grantedMac, rigConfig, startRig } from './test-rig.ts';

const closers: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A boot path whose runners cannot dial yet. */
async function rigWithoutGateway() {
  const mailbox = await openMailbox();
  const gatewayPort = Promise.withResolvers<number>();
  const { runner } = rigConfig(mailbox.port);
  const config = { runner: { ...runner, agentPort: gatewayPort.promise } };
  const rig = await startRig({ relayPort: mailbox.port, config });
  closers.push(() => mailbox.close(), rig.close);
  return { mailbox, gatewayPort, rig };
}

test('hosts get addresses and loaders before runners can dial, and wait for scripts', async () => {
  const { mailbox, gatewayPort, rig } = await rigWithoutGateway();
  const { dhcpPort = 0, tftpPort } = rig.services;
  const script = fetch(rig.url(`/boot/${grantedMac}/script.ipxe`));
  const answered: string[] = [];
  const heard = script.then(() => answered.push('script'));
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  answered.push('offer');
  expect((await fetchByTftp(tftpPort, offer.bootFile)).length).toBeGreaterThan(0);
  answered.push('loader');
  expect((await fetch(rig.url(`/boot/${grantedMac}/files/vmlinuz`))).status).toBe(200);
  answered.push('file');
  gatewayPort.resolve(7_999);
  await heard;
  expect(answered).toEqual(['offer', 'loader', 'file', 'script']);
  expect(await (await script).text()).toContain('127.0.0.1:7999');
  expect(rig.observed.filter(({ stage }) => stage === 'script')).toHaveLength(1);
});

test('GRUB hears nothing before runners can dial, and gets its script later', async () => {
  const { gatewayPort, rig } = await rigWithoutGateway();
  const socket = createSocket('udp4');
  closers.push(() => {
    socket.close();
  });
  const fileName = `boot/${grantedMac}/grub.cfg`;
  const request = { kind: 'readRequest', fileName, mode: 'octet', options: [] } as const;
  const ask = () => socket.send(encodePacket(request), rig.services.tftpPort, '127.0.0.1');
  const first = once(socket, 'message');
  ask();
  // By then the question has been read.
  await fetch(rig.url(`/boot/${grantedMac}/files/vmlinuz`));
  gatewayPort.resolve(7_999);
  await fetch(rig.url(`/boot/${grantedMac}/script.ipxe`));
  ask();
  const [answer] = (await first) as [Buffer];
  const block = decodePacket(answer);
  expect(block.kind === 'data' && Buffer.from(block.bytes).toString()).toContain('127.0.0.1:7999');
});
