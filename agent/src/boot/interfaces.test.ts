/** Two interfaces, each an address of loopback here; what a system binds to one is bound to it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { decodeDhcp, dhcpOption, readOption } from '@rackwright/dhcp';
import type { Udp, UdpSocket } from '@rackwright/platform';
import { nodeUdp } from '@rackwright/platform/node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clientAddress, relayedDiscover } from './test-clients.ts';
import { type BootRig, grantedMac, loopbackDhcp, startRig } from './test-rig.ts';

const addresses = { one: '127.0.0.1', two: '127.0.0.2' } as const;
type Name = keyof typeof addresses;

/** Sockets of an interface get its address, and are kept by its name: TFTP, DHCP, PXE. */
function interfacesOfLoopback() {
  const sockets: Record<Name, UdpSocket[]> = { one: [], two: [] };
  const udp: Udp = {
    bind: async ({ interface: name, ...rest }, handlers) => {
      if (name === undefined) return await nodeUdp().bind(rest, handlers);
      const address = addresses[name as Name];
      const socket = await nodeUdp().bind({ ...rest, address }, handlers);
      sockets[name as Name].push(socket);
      return socket;
    },
    connect: nodeUdp().connect,
  };
  return { udp, sockets };
}

/** A relay on loopback, which sends from one address and receives at a port of its own. */
async function openRelay() {
  const socket = createSocket('udp4');
  socket.bind(0, clientAddress);
  await once(socket, 'listening');
  const ask = async (datagram: Uint8Array, { local }: UdpSocket) => {
    const answered = once(socket, 'message');
    socket.send(datagram, local.port, local.address);
    const [answer, from] = (await answered) as [Buffer, { readonly address: string }];
    return { answer, from: from.address };
  };
  return { port: socket.address().port, ask, close: () => socket.close() };
}

describe.each(['one', 'two'] as const)('on interface %s', (name) => {
  const address = addresses[name];
  let rig: BootRig;
  let relay: Awaited<ReturnType<typeof openRelay>>;
  let tftp: UdpSocket;
  let dhcp: UdpSocket;

  beforeEach(async () => {
    relay = await openRelay();
    const { udp, sockets } = interfacesOfLoopback();
    const interfaces = (['one', 'two'] as const).map((each) => {
      return { name: each, serverAddress: addresses[each], dhcp: loopbackDhcp(relay.port) };
    });
    const everywhere = { address: '0.0.0.0', port: 0 };
    rig = await startRig({ udp, config: { interfaces, tftp: everywhere, http: everywhere } });
    const [first, second] = sockets[name];
    if (first === undefined || second === undefined) throw new Error('it has no sockets');
    [tftp, dhcp] = [first, second];
  });

  afterEach(async () => {
    await rig.close();
    relay.close();
  });

  test('a relay is answered from there, with the address of there', async () => {
    const { answer, from } = await relay.ask(relayedDiscover(grantedMac, 7), dhcp);
    const offer = decodeDhcp(answer);
    expect(from).toBe(address);
    expect(offer.nextServerAddress).toBe(address);
    expect(readOption(offer, dhcpOption.serverIdentifier)).toBe(address);
    const servers = readOption(offer, dhcpOption.pxe)?.bootServers;
    expect(servers).toMatchObject([{ addresses: [address] }]);
  });

  test('UEFI HTTP boot is sent to that address', async () => {
    const { answer } = await relay.ask(relayedDiscover(grantedMac, 16), dhcp);
    const url = readOption(decodeDhcp(answer), dhcpOption.bootFileName) ?? '';
    expect(url).toContain(`http://${address}:${rig.services.httpPort}/boot/`);
    const loader = await (await fetch(url)).bytes();
    expect(Buffer.compare(loader, rig.contents['snponly.efi'] ?? new Uint8Array())).toBe(0);
  });

  test('a loader comes from that address, wherever its client is', async () => {
    const request = Buffer.from('\0\u0001undionly.kpxe\0octet\0', 'latin1');
    expect((await relay.ask(request, tftp)).from).toBe(address);
  });

  test('the script that is asked for at that address names no other', async () => {
    const { httpPort } = rig.services;
    const path = `/boot/${grantedMac}/script.ipxe`;
    const script = await (await fetch(`http://${address}:${httpPort}${path}`)).text();
    expect(new Set(script.match(/\b127\.\d+\.\d+\.\d+:\d+/g))).toEqual(
      new Set([`${address}:${httpPort}`, `${address}:7443`]),
    );
  });

  test('a script that is asked for at an address of neither is refused', async () => {
    const path = `/boot/${grantedMac}/script.ipxe`;
    const answer = await fetch(`http://127.0.0.3:${rig.services.httpPort}${path}`);
    expect(answer.status).toBe(421);
    expect(rig.lines.at(-1)).toContain('HTTP request refused');
  });
});

test('with one of them away, scripts still belong to the addresses of all', async () => {
  const { udp } = interfacesOfLoopback();
  const one = { name: 'one', serverAddress: addresses.one, dhcp: { mode: 'off' } } as const;
  const everywhere = { address: '0.0.0.0', port: 0 };
  const config = { interfaces: [one], tftp: everywhere, http: everywhere };
  const rig = await startRig({ udp, config: { ...config, addresses: Object.values(addresses) } });
  const ask = (address: string) =>
    fetch(`http://${address}:${rig.services.httpPort}/boot/${grantedMac}/script.ipxe`);
  expect((await ask('127.0.0.3')).status).toBe(421);
  expect(rig.observed).toEqual([]);
  expect(await (await ask(addresses.one)).text()).toContain('rackwright.token=token-2');
  expect(rig.observed).toHaveLength(1);
  await rig.close();
});
