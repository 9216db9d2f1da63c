/** A TFTP client for measurements: many transfers at once, as little work for each as possible. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { decodePacket, encodePacket } from '@rackwright/tftp';

export interface FetchOrder {
  readonly address: string;
  readonly port: number;
  readonly fileName: string;
  readonly transfers: number;
  readonly blockBytes: number;
  readonly windowBlocks: number;
}

/** Silence after which a client sends its last packet again. */
const retryMs = 500;
const retriesMax = 60;
/** Requests for one file, when the server gives up on the transfers of those before. */
const requestsMax = 4;

export interface Fetched {
  readonly bytes: number;
  /** What the server granted; 1 when it said nothing of windows. */
  readonly windowBlocks: number;
  /** Transfers that the server had given up, because this process was too busy to answer it. */
  readonly givenUp: number;
}

/** Fetches the file `transfers` times at once; returns the sum of the bytes. */
export async function fetchTogether(order: FetchOrder): Promise<Fetched> {
  const all = await Promise.all(Array.from({ length: order.transfers }, () => fetchOnce(order)));
  const sum = (key: 'bytes' | 'givenUp') => all.reduce((before, one) => before + one[key], 0);
  const windowBlocks = all[0]?.windowBlocks ?? 1;
  return { bytes: sum('bytes'), windowBlocks, givenUp: sum('givenUp') };
}

/**
 * Asks anew when its transfer is gone, from the first byte on. A host has a processor of its own
 * and answers in time; here a thousand share one process.
 */
async function fetchOnce(order: FetchOrder): Promise<Fetched> {
  for (let givenUp = 0; ; givenUp += 1) {
    try {
      return { ...(await transfer(order)), givenUp };
    } catch (error) {
      if (!isRefusal(error) || givenUp + 1 >= requestsMax) throw error;
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}

function transfer(order: FetchOrder): Promise<Omit<Fetched, 'givenUp'>> {
  const { address, port, fileName, blockBytes, windowBlocks } = order;
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    // What we asked for, until an option acknowledgement grants it.
    let granted = { blockBytes: 512, windowBlocks: 1 };
    let bytes = 0;
    let expected = 1;
    let sinceAck = 0;
    let isConnected = false;
    let retries = 0;
    const options: (readonly [string, string])[] = [['blksize', String(blockBytes)]];
    if (windowBlocks > 1) options.push(['windowsize', String(windowBlocks)]);
    const request = { kind: 'readRequest', fileName, mode: 'octet', options } as const;
    let last = encodePacket(request);
    const send = (sent?: () => void): void => {
      if (isConnected) socket.send(last, sent);
      else socket.send(last, port, address, sent);
    };
    const timer = setInterval(() => {
      retries += 1;
      if (retries > retriesMax) finish(new Error(`silence after ${bytes} bytes`));
      else send();
    }, retryMs);
    const finish = (error?: Error | null): void => {
      clearInterval(timer);
      socket.close();
      if (error === undefined || error === null)
        resolve({ bytes, windowBlocks: granted.windowBlocks });
      else reject(error);
    };
    const acknowledge = (block: number, sent?: () => void): void => {
      sinceAck = 0;
      last = encodePacket({ kind: 'ack', block: block & 0xffff });
      send(sent);
    };
    /** The first answer tells the port of the transfer; a connected socket costs least. */
    const begin = (datagram: Uint8Array, from: RemoteInfo): void => {
      socket.off('message', begin);
      socket.connect(from.port, address, () => {
        isConnected = true;
        socket.on('message', hear);
        hear(datagram);
      });
    };
    const hear = (datagram: Uint8Array): void => {
      timer.refresh();
      const packet = decodePacket(datagram);
      if (packet.kind === 'error') finish(new Error(packet.message));
      if (packet.kind === 'optionAck') {
        const value = (name: string, otherwise: number): number =>
          Number(packet.options.find(([one]) => one === name)?.[1] ?? otherwise);
        granted = { blockBytes: value('blksize', 512), windowBlocks: value('windowsize', 1) };
        acknowledge(0);
      }
      if (packet.kind !== 'data') return;
      if (packet.block !== (expected & 0xffff)) {
        acknowledge(expected - 1);
        return;
      }
      expected += 1;
      sinceAck += 1;
      bytes += packet.bytes.length;
      // The socket may close only when the last acknowledgement has left it.
      if (packet.bytes.length < granted.blockBytes) acknowledge(packet.block, finish);
      else if (sinceAck >= granted.windowBlocks) acknowledge(packet.block);
    };
    socket.on('error', finish);
    socket.on('message', begin);
    send();
  });
}
