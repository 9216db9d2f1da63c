/**
 * The server's packets (RFC 2131 table 3) and where they go (§4.1).
 *
 * R1 A packet that refuses an address carries no other, and reaches the client with each address
 *    that it may take for its own.
 * R2 Nothing is sent to an address that a client does not have yet: without raw sockets it would
 *    not arrive, so the packet is broadcast.
 */
import type { AnswerPaths, Peer } from '../answer.ts';
import type { BootParts } from '../boot-parts.ts';
import { repeatedOptions } from '../identifiers.ts';
import { dhcpOption, writeOption } from '../options.ts';
import type { DhcpPacket } from '../packet.ts';
import { broadcastAddress, type Subnet, subnetMask } from '../subnet.ts';

const unset = '0.0.0.0';
const broadcastFlag = 0x8000;

/** The settings for every client of the subnet. */
export interface SubnetSettings {
  /** 60 to 0xfffffffe seconds. */
  readonly leaseSeconds: number;
  /** The preferred one first; none is fine. */
  readonly routers: readonly string[];
  readonly nameServers: readonly string[];
  readonly domainName?: string;
}

export interface ReplyPaths extends AnswerPaths {
  readonly serverAddress: string;
}

export interface Reply {
  readonly packet: DhcpPacket;
  readonly to: Peer;
}

/** The content of a positive answer. */
export interface DhcpGrant {
  readonly messageType: 'offer' | 'ack';
  /** The client's address; absent in the answer to an inform, which gives none. */
  readonly address: string | undefined;
  readonly subnet: Subnet;
  readonly settings: SubnetSettings;
  readonly boot: BootParts | undefined;
}

type Options = readonly (readonly [code: number, value: Uint8Array])[];

/** Undefined when the client's identifiers would not fit the answer. */
export function grantReply(
  request: DhcpPacket,
  granted: DhcpGrant,
  paths: ReplyPaths,
): Reply | undefined {
  const repeated = repeatedOptions(request);
  if (typeof repeated === 'number') return undefined;
  const { messageType, address, boot } = granted;
  const packet: DhcpPacket = {
    ...blank(request),
    clientAddress: messageType === 'ack' ? request.clientAddress : unset,
    yourAddress: address ?? unset,
    nextServerAddress: boot === undefined ? unset : paths.serverAddress,
    bootFile: boot?.bootFile ?? '',
    options: new Map([
      writeOption(dhcpOption.messageType, messageType),
      writeOption(dhcpOption.serverIdentifier, paths.serverAddress),
      ...(address === undefined ? [] : leaseOptions(granted.settings.leaseSeconds)),
      ...subnetOptions(granted),
      ...(boot?.options ?? []),
      ...repeated,
    ]),
  };
  return { packet, to: destination(packet, request, paths) };
}

/** `message` is for readers of the client's log. */
export function refusalReply(
  request: DhcpPacket,
  message: string,
  paths: ReplyPaths,
): Reply | undefined {
  const repeated = repeatedOptions(request);
  if (typeof repeated === 'number') return undefined;
  const relayed = request.relayAddress !== unset;
  const packet: DhcpPacket = {
    ...blank(request),
    flags: relayed ? request.flags | broadcastFlag : request.flags,
    options: new Map([
      writeOption(dhcpOption.messageType, 'nak'),
      writeOption(dhcpOption.serverIdentifier, paths.serverAddress),
      writeOption(dhcpOption.message, message),
      ...repeated,
    ]),
  };
  return { packet, to: destination(packet, request, paths) };
}

function blank(request: DhcpPacket): DhcpPacket {
  return {
    ...request,
    op: 'reply',
    hops: 0,
    seconds: 0,
    clientAddress: unset,
    yourAddress: unset,
    nextServerAddress: unset,
    serverName: '',
    bootFile: '',
    options: new Map(),
  };
}

/** T1 is half of the lease and T2 seven eighths (RFC 2131 §4.4.5). */
function leaseOptions(leaseSeconds: number): Options {
  return [
    writeOption(dhcpOption.leaseSeconds, leaseSeconds),
    writeOption(dhcpOption.renewalSeconds, Math.floor(leaseSeconds / 2)),
    writeOption(dhcpOption.rebindingSeconds, Math.floor((leaseSeconds * 7) / 8)),
  ];
}

function subnetOptions({ subnet, settings }: DhcpGrant): Options {
  const { routers, nameServers, domainName } = settings;
  // The mask comes before the routers (RFC 2132 §3.3).
  return [
    writeOption(dhcpOption.subnetMask, subnetMask(subnet)),
    writeOption(dhcpOption.broadcastAddress, broadcastAddress(subnet)),
    ...(routers.length === 0 ? [] : [writeOption(dhcpOption.routers, routers)]),
    ...(nameServers.length === 0 ? [] : [writeOption(dhcpOption.nameServers, nameServers)]),
    ...(domainName === undefined ? [] : [writeOption(dhcpOption.domainName, domainName)]),
  ];
}

function destination(packet: DhcpPacket, request: DhcpPacket, paths: ReplyPaths): Peer {
  if (request.relayAddress !== unset)
    return { address: request.relayAddress, port: paths.relayPort };
  const { clientPort: port } = paths;
  // R1: the address in a request that was refused may not even be the client's.
  if (packet.clientAddress !== unset) return { address: packet.clientAddress, port };
  return { address: paths.broadcastAddress, port };
}
