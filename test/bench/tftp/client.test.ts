import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { decodePacket, encodePacket } from '@rackwright/tftp';
import { afterEach, expect, test } from 'vitest';
import { fetchTogether } from './client.ts';

const address = '127.0.0.1';
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, address);
  await once(socket, 'listening');
  return socket;
}

/** Says yes to each request; what it does with the transfer is `serve`'s. */
async function startServer(serve: (transfer: Socket, client: RemoteInfo) => void): Promise<number> {
  const server = await bound();
  sockets.push(server);
  const grant = async (client: RemoteInfo): Promise<void> => {
    const transfer = await bound();
    const granted = encodePacket({ kind: 'optionAck', options: [['blksize', '512']] });
    transfer.send(granted, client.port, client.address, () => serve(transfer, client));
  };
  server.on('message', (_request, client) => void grant(client));
  return server.address().port;
}

function fetchFrom(port: number) {
  const order = { fileName: 'loader', transfers: 1, blockBytes: 512, windowBlocks: 1 };
  return fetchTogether({ address, port, ...order });
}

test('a client asks again when the server has given up its transfer, and counts that', async () => {
  let requests = 0;
  const port = await startServer((transfer, client) => {
    requests += 1;
    if (requests === 1) {
      transfer.close();
      return;
    }
    sockets.push(transfer);
    transfer.on('message', (datagram) => {
      if (decodePacket(datagram).kind !== 'ack') return;
      const block = { kind: 'data', block: 1, bytes: new Uint8Array(100) } as const;
      transfer.send(encodePacket(block), client.port, client.address);
    });
  });
  expect(await fetchFrom(port)).toMatchObject({ bytes: 100, givenUp: 1 });
  expect(requests).toBe(2);
});

test('a client ends when the server gives up transfer after transfer', async () => {
  let requests = 0;
  const port = await startServer((transfer) => {
    requests += 1;
    transfer.close();
  });
  await expect(fetchFrom(port)).rejects.toThrow('ECONNREFUSED');
  expect(requests).toBe(4);
});
