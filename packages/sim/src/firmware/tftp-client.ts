/**
 * A TFTP client as firmware has it: asks for the size first (RFC 2349), then fetches with blocks of
 * 1468 bytes (RFC 2348) and, as EDK2 does, windows of 4 (RFC 7440).
 *
 * T1 A block counts only in its order; anything else repeats the last acknowledgement.
 * T2 The number of fetched bytes is the size that the server announced.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { decodePacket, encodePacket, type TftpOption, tftpError } from '@rackwright/tftp';

export interface TftpFetch {
  /** Ours. */
  readonly address: string;
  readonly server: string;
  readonly port: number;
  readonly fileName: string;
  /** Blocks sent before an acknowledgement; 1 means that the option is not sent. */
  readonly windowBlocks: number;
}

const blockBytes = 1_468;
const plainBlockBytes = 512;
const patienceMs = 1_000;
const silencesMax = 6;

/** The file. Throws with the server's words when it refuses, or when it falls silent. */
export async function fetchByTftp(fetch: TftpFetch): Promise<Uint8Array> {
  const size = await askSize(fetch);
  const bytes = await fetchBlocks(fetch);
  if (size !== undefined && size !== bytes.length) {
    throw new Error(`${fetch.fileName}: ${bytes.length} bytes came, ${size} were announced`);
  }
  return bytes;
}

/** The announced size; the transfer is ended at once, as EDK2 does it. */
async function askSize(fetch: TftpFetch): Promise<number | undefined> {
  const line = await openLine(fetch);
  try {
    line.request([['tsize', '0']]);
    const packet = await line.next();
    if (packet.kind === 'error') throw refusal(fetch, packet.message);
    line.answer({ kind: 'error', code: tftpError.notDefined, message: 'size is known' });
    if (packet.kind !== 'optionAck') return undefined;
    const size = optionOf(packet.options, 'tsize');
    return size === undefined ? undefined : Number(size);
  } finally {
    line.close();
  }
}

async function fetchBlocks(fetch: TftpFetch): Promise<Uint8Array> {
  const { windowBlocks } = fetch;
  const line = await openLine(fetch);
  try {
    const requestedOptions: TftpOption[] = [['blksize', String(blockBytes)]];
    if (windowBlocks > 1) requestedOptions.push(['windowsize', String(windowBlocks)]);
    line.request(requestedOptions);
    const pieces: Uint8Array[] = [];
    let size = plainBlockBytes;
    let window = 1;
    for (;;) {
      const packet = await line.next();
      if (packet.kind === 'error') throw refusal(fetch, packet.message);
      if (packet.kind === 'optionAck') {
        size = Number(optionOf(packet.options, 'blksize') ?? plainBlockBytes);
        window = Number(optionOf(packet.options, 'windowsize') ?? 1);
        line.answer({ kind: 'ack', block: 0 });
      }
      if (packet.kind !== 'data') continue;
      const inOrder = packet.block === ((pieces.length + 1) & 0xffff);
      if (inOrder) pieces.push(packet.bytes);
      const isLast = inOrder && packet.bytes.length < size;
      if (isLast || !inOrder || pieces.length % window === 0) {
        line.answer({ kind: 'ack', block: pieces.length & 0xffff });
      }
      if (isLast) return Buffer.concat(pieces);
    }
  } finally {
    line.close();
  }
}

type Packet = ReturnType<typeof decodePacket>;

interface Line {
  request(options: readonly TftpOption[]): void;
  answer(packet: Packet): void;
  /** The server's next packet; our last packet is repeated while the server is silent. */
  next(): Promise<Packet>;
  close(): void;
}

async function openLine({ address, server, port, fileName }: TftpFetch): Promise<Line> {
  const socket: Socket = createSocket('udp4');
  const listening = once(socket, 'listening');
  socket.bind(0, address);
  await listening;
  socket.on('error', () => {});
  const arrived: Packet[] = [];
  let wake = (): void => {};
  let serverPort = port;
  let reply: Uint8Array = new Uint8Array();
  let sending: Promise<void> = Promise.resolve();
  socket.on('message', (datagram, from) => {
    serverPort = from.port;
    arrived.push(decodePacket(datagram));
    wake();
  });
  const say = (packet: Packet): void => {
    reply = encodePacket(packet);
    sending = new Promise((resolve) => {
      socket.send(reply, serverPort, server, () => resolve());
    });
  };
  const one = async (): Promise<Packet | undefined> => {
    if (arrived.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, patienceMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return arrived.shift();
  };
  return {
    request: (options) => say({ kind: 'readRequest', fileName, mode: 'octet', options }),
    answer: say,
    async next() {
      for (let silences = 0; silences < silencesMax; silences += 1) {
        const packet = await one();
        if (packet !== undefined) return packet;
        socket.send(reply, serverPort, server);
      }
      throw new Error(`${fileName}: the TFTP server ${server}:${serverPort} is silent`);
    },
    // Not before the last word has gone: the server would wait for it.
    close: () => void sending.then(() => socket.close()),
  };
}

function optionOf(options: readonly TftpOption[], wanted: string): string | undefined {
  return options.find(([name]) => name.toLowerCase() === wanted)?.[1];
}

function refusal({ fileName }: TftpFetch, message: string): Error {
  return new Error(`${fileName}: the TFTP server refuses: ${message}`);
}
