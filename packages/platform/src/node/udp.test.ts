import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { UdpConnection, UdpPeer, UdpSocket } from '../udp.ts';
import { nodeUdp } from './udp.ts';

interface Heard {
  readonly socket: UdpSocket;
  readonly errors: Error[];
  next(): Promise<{ bytes: number[]; from: UdpPeer }>;
}

async function listener(address = '127.0.0.1', port = 0, broadcast = false): Promise<Heard> {
  const heard: { bytes: number[]; from: UdpPeer }[] = [];
  const waiting: (() => void)[] = [];
  const errors: Error[] = [];
  const socket = await nodeUdp().bind(
    { address, port, broadcast },
    {
      onDatagram(datagram, from) {
        heard.push({ bytes: [...datagram], from });
        waiting.shift()?.();
      },
      onError: (error) => errors.push(error),
    },
  );
  const next = async () => {
    if (heard.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    const first = heard.shift();
    if (first === undefined) throw new Error('woken without a datagram');
    return first;
  };
  return { socket, errors, next };
}

test('the socket carries datagrams, empty ones too, with the address of their sender', async () => {
  const a = await listener();
  const b = await listener();
  a.socket.send(Uint8Array.of(1, 2, 3), b.socket.local);
  expect(await b.next()).toEqual({ bytes: [1, 2, 3], from: a.socket.local });
  b.socket.send(new Uint8Array(), a.socket.local);
  expect((await a.next()).bytes).toEqual([]);
  a.socket.close();
  b.socket.close();
});

test('the socket reaches a broadcast address when asked to', async () => {
  const server = await listener('0.0.0.0', 0, true);
  const client = await listener('0.0.0.0', 0, true);
  const { port } = server.socket.local;
  client.socket.send(Uint8Array.of(9), { address: '127.255.255.255', port });
  expect((await server.next()).bytes).toEqual([9]);
  server.socket.close();
  client.socket.close();
});

test('the opening rejects when the address is taken', async () => {
  const first = await listener();
  await expect(listener('127.0.0.1', first.socket.local.port)).rejects.toThrow('EADDRINUSE');
  first.socket.close();
});

test('a failed send is reported and does not throw', async () => {
  const a = await listener();
  a.socket.send(Uint8Array.of(1), { address: '127.0.0.1', port: 0 });
  a.socket.send(new Uint8Array(70_000), { address: '127.0.0.1', port: 9 });
  await expect.poll(() => a.errors.length).toBe(2);
  a.socket.close();
  a.socket.close();
  a.socket.send(Uint8Array.of(1), { address: '127.0.0.1', port: 9 });
});

test('the socket reports its buffer size, which may be less than was asked for', async () => {
  const heard = { onDatagram: () => {}, onError: () => {} };
  const of = async (receiveBytes: number) => {
    const where = { address: '127.0.0.1', port: 0 };
    const socket = await nodeUdp().bind({ ...where, receiveBytes }, heard);
    socket.close();
    return socket.receiveBytes;
  };
  expect(await of(16_384)).toBe(16_384);
  expect(await of(2 ** 30)).toBeLessThan(2 ** 30);
});

test('the socket speaks IPv6', async () => {
  const a = await listener('::1');
  const b = await listener('::1');
  a.socket.send(Uint8Array.of(6), b.socket.local);
  expect((await b.next()).from.address).toBe('::1');
  a.socket.close();
  b.socket.close();
});

test('a shared port has a socket for each address, and belongs to whoever began it', async () => {
  const to: string[] = [];
  const heard = (name: string) => ({ onDatagram: () => to.push(name), onError: () => {} });
  const all = await nodeUdp().bind({ address: '0.0.0.0', port: 0, share: 'begin' }, heard('all'));
  const { port } = all.local;
  const one = { address: '127.0.0.2', port, share: 'join' } as const;
  const joined = await nodeUdp().bind(one, heard('127.0.0.2'));
  const client = await listener();
  for (const address of ['127.0.0.2', '127.0.0.1']) {
    client.socket.send(Uint8Array.of(1), { address, port });
    await expect.poll(() => to.length).toBe(address === '127.0.0.2' ? 1 : 2);
  }
  expect(to).toEqual(['127.0.0.2', 'all']);
  const again = { address: '0.0.0.0', port, share: 'begin' } as const;
  await expect(nodeUdp().bind(again, heard('again'))).rejects.toThrow('EADDRINUSE');
  for (const socket of [all, joined, client.socket]) socket.close();
});

interface Connected {
  readonly connection: UdpConnection;
  readonly heard: number[][];
  readonly refusals: () => number;
}

async function connection(peer: UdpPeer, address = '127.0.0.1'): Promise<Connected> {
  const heard: number[][] = [];
  let refusals = 0;
  const opened = await nodeUdp().connect(
    { address, port: 0, peer },
    {
      onDatagram: (datagram) => heard.push([...datagram]),
      onRefused: () => {
        refusals += 1;
      },
    },
  );
  return { connection: opened, heard, refusals: () => refusals };
}

const two = [Uint8Array.of(1), Uint8Array.of(2, 3)];

test.each(['127.0.0.1', '0.0.0.0'])('a connection at %s hears its peer only', async (address) => {
  const [peer, stranger] = [await listener(), await listener()];
  const { connection: ours, heard } = await connection(peer.socket.local, address);
  ours.send([two, [new Uint8Array()], [Uint8Array.of(4)]]);
  const first = await peer.next();
  expect(first.bytes).toEqual([1, 2, 3]);
  expect((await peer.next()).bytes).toEqual([]);
  expect((await peer.next()).bytes).toEqual([4]);
  stranger.socket.send(Uint8Array.of(6), first.from);
  peer.socket.send(Uint8Array.of(5), first.from);
  await expect.poll(() => heard).toEqual([[5]]);
  for (const socket of [ours, peer.socket, stranger.socket]) socket.close();
});

test('a connection of all addresses is spoken to at any of them', async () => {
  const peer = await listener();
  const { connection: ours, heard } = await connection(peer.socket.local, '0.0.0.0');
  peer.socket.send(Uint8Array.of(1), { address: '127.0.0.9', port: ours.local.port });
  await expect.poll(() => heard).toEqual([[1]]);
  for (const socket of [ours, peer.socket]) socket.close();
});

test.each([1, 2, 3, 4])('a peer that has gone refuses one of %i datagrams', async (count) => {
  // Another program may have taken the port of the peer since: then there is no refusal.
  await expect
    .poll(async () => {
      const peer = await listener();
      peer.socket.close();
      const gone = await connection(peer.socket.local);
      gone.connection.send(Array.from({ length: count }, () => two));
      await sleep(100);
      gone.connection.close();
      gone.connection.close();
      gone.connection.send([two, two]);
      return gone.refusals();
    })
    .toBeGreaterThan(0);
});

test('a peer without a port, or with the wildcard address, gets no connection', async () => {
  for (const peer of [
    { address: '127.0.0.1', port: 0 },
    { address: '255.255.255.255', port: 9 },
  ]) {
    await expect(connection(peer)).rejects.toThrow();
  }
});
