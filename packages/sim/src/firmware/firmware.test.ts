/** Firmware and the site's address server on real sockets; the agent joins them in test/e2e. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeDhcp, dhcpOption, encodeDhcp, readOption, writeOption } from '@rackwright/dhcp';
import { decodePacket, encodePacket } from '@rackwright/tftp';
import { afterEach, expect, test } from 'vitest';
import { freePorts } from '../loopback/index.ts';
import { DhcpClient } from './dhcp-client.ts';
import { netboot } from './firmware.ts';
import { fetchByHttp } from './http-client.ts';
import { type SiteDhcpServer, startLeaseGiver } from './lease-giver.ts';
import type { BootNetwork } from './network.ts';
import { fetchByTftp } from './tftp-client.ts';

const broadcastAddress = '127.255.255.255';
const uuid = '0102030405060708090a0b0c0d0e0f10';
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function site(): Promise<{ network: BootNetwork; giver: SiteDhcpServer }> {
  const [dhcpPort = 0, clientPort = 0, pxePort = 0, tftpPort = 0] = await freePorts(4);
  const network = { broadcastAddress, dhcpPort, clientPort, pxePort, tftpPort };
  const giver = await startLeaseGiver({
    ...network,
    serverAddress: '127.0.0.1',
    prefix: '127.78.1',
  });
  closing.push(() => giver.close());
  return { network, giver };
}

const macOf = (number: number) => `52:54:00:00:02:0${number}`;

test('every machine has its own address, and none boots without an offer', async () => {
  const { network, giver } = await site();
  const booted = await Promise.all(
    [1, 2, 3].map(async (number) => {
      const identity = { mac: macOf(number), uuid };
      const client = await DhcpClient.open(network, identity, 'uefi');
      closing.push(() => client.close());
      return await client.acquire('firmware');
    }),
  );
  expect(booted.map(({ boot }) => boot)).toEqual([undefined, undefined, undefined]);
  const addresses = booted.map(({ address }) => address);
  expect(new Set(addresses).size).toBe(3);
  expect([...giver.leases.values()].sort()).toEqual(addresses.toSorted());
});

test('the firmware goes to its own disk when nobody offers a boot', async () => {
  const { network } = await site();
  const identity = { mac: macOf(1), uuid };
  const end = await netboot({ form: 'bios', identity, network, print: () => {} });
  expect(end).toEqual({ kind: 'localDisk', reason: 'nobody offered a boot' });
});

test('the firmware ignores an offer to another machine', async () => {
  const { network } = await site();
  const liar = createSocket({ type: 'udp4', reuseAddr: true });
  liar.bind(network.dhcpPort, broadcastAddress);
  await once(liar, 'listening');
  closing.push(() => liar.close());
  liar.on('message', (datagram) => {
    const packet = decodeDhcp(datagram);
    if (readOption(packet, dhcpOption.messageType) !== 'discover') return;
    const offer = {
      ...packet,
      op: 'reply' as const,
      hardwareAddress: Uint8Array.of(2, 2, 2, 2, 2, 2),
      yourAddress: '127.66.6.6',
      bootFile: 'trap',
      options: new Map([writeOption(dhcpOption.messageType, 'offer')]),
    };
    liar.setBroadcast(true);
    liar.send(encodeDhcp(offer), network.clientPort, broadcastAddress);
    liar.send(Uint8Array.of(1, 2, 3), network.clientPort, broadcastAddress);
  });
  const client = await DhcpClient.open(network, { mac: macOf(4), uuid }, 'bios');
  closing.push(() => client.close());
  expect(await client.acquire('firmware')).toEqual({ address: '127.78.1.10', boot: undefined });
});

test('the firmware ends a fetch with the words of a TFTP server that refuses', async () => {
  const server = createSocket('udp4');
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  server.on('message', (datagram, from) => {
    expect(decodePacket(datagram)).toMatchObject({ kind: 'readRequest', fileName: 'x' });
    const refusal = encodePacket({ kind: 'error', code: 2, message: 'no boot grant' });
    server.send(refusal, from.port, from.address);
  });
  const { port } = server.address();
  const fetching = fetchByTftp({
    address: '127.78.1.9',
    server: '127.0.0.1',
    port,
    fileName: 'x',
    windowBlocks: 4,
  });
  await expect(fetching).rejects.toThrow('x: the TFTP server refuses: no boot grant');
});

test('the firmware refuses an HTTP body that is shorter than announced', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('half');
    setTimeout(() => response.destroy(), 20);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  await expect(fetchByHttp(`http://127.0.0.1:${port}/`, '127.0.0.1')).rejects.toThrow();
});
