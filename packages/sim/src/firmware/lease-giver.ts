/**
 * The site's own DHCP server, beside which an agent in proxy mode works: gives addresses of
 * 127.0.0.0/8 and knows nothing of booting.
 *
 * G1 A hardware address keeps its address for as long as this runs; addresses never run out
 *    silently: beyond the last one there is no offer.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { DecodeError } from '@rackwright/bytes';
import {
  type DhcpPacket,
  decodeDhcp,
  dhcpOption,
  encodeDhcp,
  readOption,
  writeOption,
} from '@rackwright/dhcp';
import type { BootNetwork } from './network.ts';

export interface LeaseGiverOptions
  extends Pick<BootNetwork, 'broadcastAddress' | 'dhcpPort' | 'clientPort'> {
  /** Its own address in answers. */
  readonly serverAddress: string;
  /** The first three numbers of the addresses that it gives: "127.77.1". */
  readonly prefix: string;
}

export interface SiteDhcpServer {
  /** Addresses by hardware address, as given so far. */
  readonly leases: ReadonlyMap<string, string>;
  close(): void;
}

const firstNumber = 10;
const lastNumber = 250;
const leaseSeconds = 3_600;

/** Serves until it is closed. Rejects when the port cannot be bound. */
export async function startLeaseGiver(options: LeaseGiverOptions): Promise<SiteDhcpServer> {
  const { broadcastAddress, dhcpPort, clientPort } = options;
  const leases = new Map<string, string>();
  const socket = createSocket({ type: 'udp4', reuseAddr: true });
  const listening = once(socket, 'listening');
  socket.bind(dhcpPort, broadcastAddress);
  await listening;
  socket.setBroadcast(true);
  socket.on('error', () => {});
  socket.on('message', (datagram) => {
    const reply = replyTo(datagram, leases, options);
    if (reply !== undefined) socket.send(encodeDhcp(reply), clientPort, broadcastAddress);
  });
  return { leases, close: () => socket.close() };
}

function replyTo(
  datagram: Uint8Array,
  leases: Map<string, string>,
  options: LeaseGiverOptions,
): DhcpPacket | undefined {
  try {
    const packet = decodeDhcp(datagram);
    if (packet.op !== 'request') return undefined;
    const messageType = readOption(packet, dhcpOption.messageType);
    if (messageType !== 'discover' && messageType !== 'request') return undefined;
    const address = leaseOf(packet, leases, options.prefix);
    if (address === undefined) return undefined;
    return {
      ...packet,
      op: 'reply',
      yourAddress: address,
      nextServerAddress: '0.0.0.0',
      bootFile: '',
      options: new Map([
        writeOption(dhcpOption.messageType, messageType === 'discover' ? 'offer' : 'ack'),
        writeOption(dhcpOption.serverIdentifier, options.serverAddress),
        writeOption(dhcpOption.subnetMask, '255.0.0.0'),
        writeOption(dhcpOption.leaseSeconds, leaseSeconds),
      ]),
    };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return undefined;
  }
}

function leaseOf(
  packet: DhcpPacket,
  leases: Map<string, string>,
  prefix: string,
): string | undefined {
  const mac = Buffer.from(packet.hardwareAddress).toString('hex');
  const known = leases.get(mac);
  if (known !== undefined) return known;
  const number = firstNumber + leases.size;
  if (number > lastNumber) return undefined;
  const address = `${prefix}.${number}`;
  leases.set(mac, address);
  return address;
}
