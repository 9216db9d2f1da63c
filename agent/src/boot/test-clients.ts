/** The firmware's side of a boot, as far as a test on loopback needs it. */
import { randomInt } from 'node:crypto';
import { type DhcpPacket, decodeDhcp, dhcpOption, encodeDhcp, writeOption } from '@rackwright/dhcp';
import type { UdpPeer } from '@rackwright/platform';
import { nodeUdp } from '@rackwright/platform/node';
import { decodePacket, encodePacket, type TftpOption, type TftpPacket } from '@rackwright/tftp';

/** Firmware asks again after this long; loss on a flooded socket is part of the tests. */
const patienceMs = 1_000;

export interface Mailbox {
  readonly port: number;
  /** To loopback unless an address is given. */
  send(datagram: Uint8Array, port: number, address?: string): void;
  /** The next datagram, or undefined when none comes in time. */
  next(waitMs: number): Promise<{ datagram: Uint8Array; from: UdpPeer } | undefined>;
  close(): void;
}

/**
 * The loopback address of this file's clients. Test files that run at once each have another
 * one: a port that one file has closed is soon given to another, while a server still sends the
 * rest of a transfer to it.
 */
export const clientAddress = `127.${randomInt(64, 128)}.${randomInt(256)}.${randomInt(1, 255)}`;

export async function openMailbox(ownAddress = clientAddress): Promise<Mailbox> {
  const arrived: { datagram: Uint8Array; from: UdpPeer }[] = [];
  let wake: (() => void) | undefined;
  const socket = await nodeUdp().bind(
    { address: ownAddress, port: 0 },
    {
      onDatagram(datagram, from) {
        arrived.push({ datagram, from });
        wake?.();
      },
      onError(error) {
        throw error;
      },
    },
  );
  return {
    port: socket.local.port,
    send: (datagram, port, address = '127.0.0.1') => socket.send(datagram, { address, port }),
    async next(waitMs) {
      if (arrived.length === 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, waitMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return arrived.shift();
    },
    close: () => socket.close(),
  };
}

/** A DISCOVER through a relay on loopback, so that its answer returns there. */
export function relayedDiscover(mac: string, architecture: number): Uint8Array {
  const vendorClass = architecture >= 15 ? 'HTTPClient' : 'PXEClient';
  return relayed(mac, [
    writeOption(dhcpOption.vendorClass, vendorClass),
    writeOption(dhcpOption.architectures, [architecture]),
  ]);
}

/** The same of U-Boot, by the options that it sends. */
export function uBootDiscover(mac: string): Uint8Array {
  return relayed(mac, [
    writeOption(dhcpOption.vendorClass, 'U-Boot.armv8'),
    writeOption(dhcpOption.architectures, [22]),
  ]);
}

/** The same of a system, which boots nothing. */
export function plainDiscover(mac: string): Uint8Array {
  return relayed(mac, []);
}

function relayed(mac: string, more: readonly (readonly [number, Uint8Array])[]): Uint8Array {
  return encodeDhcp({
    op: 'request',
    hardwareType: 1,
    hops: 1,
    transactionId: 0x1234_5678,
    seconds: 0,
    flags: 0x8000,
    clientAddress: '0.0.0.0',
    yourAddress: '0.0.0.0',
    nextServerAddress: '0.0.0.0',
    relayAddress: clientAddress,
    hardwareAddress: Uint8Array.from(mac.split(':'), (pair) => Number.parseInt(pair, 16)),
    serverName: '',
    bootFile: '',
    options: new Map([writeOption(dhcpOption.messageType, 'discover'), ...more]),
  });
}

/** Asks until an offer arrives, as firmware does. */
export async function discover(
  mailbox: Mailbox,
  dhcpPort: number,
  request: Uint8Array,
): Promise<DhcpPacket> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    mailbox.send(request, dhcpPort);
    const answer = await mailbox.next(patienceMs);
    if (answer !== undefined) return decodeDhcp(answer.datagram);
  }
  throw new Error('no offer in ten attempts');
}

/** Fetches a file as a client that loses little; throws with the server's words when refused. */
export async function fetchByTftp(
  tftpPort: number,
  fileName: string,
  options: readonly TftpOption[] = [['blksize', '1468']],
): Promise<Uint8Array> {
  const mailbox = await openMailbox();
  const request: TftpPacket = { kind: 'readRequest', fileName, mode: 'octet', options };
  const pieces: Uint8Array[] = [];
  let [blockBytes, windowBlocks] = [512, 1];
  let last: Uint8Array = encodePacket(request);
  let port = tftpPort;
  mailbox.send(last, port);
  for (let silences = 0; silences < 10; ) {
    const arrived = await mailbox.next(patienceMs);
    if (arrived === undefined) {
      silences += 1;
      mailbox.send(last, port);
      continue;
    }
    port = arrived.from.port;
    const packet = decodePacket(arrived.datagram);
    if (packet.kind === 'error') {
      mailbox.close();
      throw new Error(`TFTP error ${packet.code}: ${packet.message}`);
    }
    if (packet.kind === 'optionAck') {
      const granted = new Map(packet.options);
      blockBytes = Number(granted.get('blksize') ?? 512);
      windowBlocks = Number(granted.get('windowsize') ?? 1);
      last = encodePacket({ kind: 'ack', block: 0 });
    }
    if (packet.kind === 'data' && packet.block === ((pieces.length + 1) & 0xffff)) {
      pieces.push(packet.bytes);
      last = encodePacket({ kind: 'ack', block: packet.block });
    }
    const isLast = packet.kind === 'data' && packet.bytes.length < blockBytes;
    if (packet.kind !== 'data' || isLast || pieces.length % windowBlocks === 0) {
      mailbox.send(last, port);
    }
    if (isLast) {
      mailbox.close();
      return Buffer.concat(pieces);
    }
  }
  throw new Error(`TFTP fell silent after ${pieces.length} blocks`);
}
