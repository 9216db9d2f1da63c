/**
 * What a DHCP proxy answers: boot parameters only, beside the server that gives addresses.
 *
 * A1 No answer assigns an address, and none claims to be the address server (PXE 2.1 §2.4: offers
 *    of a proxy have `yiaddr` 0 and the vendor class of the client).
 * A2 A discover is answered on the DHCP port, a request or inform on the PXE port, nothing else
 *    anywhere: requests on the DHCP port belong to the address server.
 * A3 A client without a boot gets no answer, and so waits no longer than for other offers.
 * A4 U-Boot hears no proxy: it takes its boot from the server of its address alone. The silence
 *    says so.
 * A5 Pure and total over decoded packets: a malformed message type is silence with a reason, and
 *    what a client says beside it counts as not there when it cannot be decoded.
 */
import { DecodeError } from '@rackwright/bytes';
import {
  type BootAsker,
  type BootParts,
  type BootSettings,
  bootParts,
  type DhcpBootPermission,
  readPxe,
} from './boot-parts.ts';
import { bootClient } from './client.ts';
import { isEthernet, macOf, repeatedOptions } from './identifiers.ts';
import type { MessageType } from './option/message-type.ts';
import { dhcpOption, readOption, writeOption } from './options.ts';
import type { DhcpPacket } from './packet.ts';
import { type IgnoredOption, SideOptions } from './side-options.ts';

/** Which of the two sockets received a packet: DHCP (67) or PXE (4011). */
export type ProxyService = 'dhcp' | 'pxe';

export interface Peer {
  readonly address: string;
  readonly port: number;
}

/** A request that a boot server has to think about. */
export interface BootRequest extends BootAsker {
  readonly packet: DhcpPacket;
  readonly service: ProxyService;
  readonly from: Peer;
  /** Options that could not be decoded, and count as not there. */
  readonly ignored: readonly IgnoredOption[];
}

export interface Silence {
  readonly kind: 'silence';
  readonly reason: string;
}

/** The destinations of answers. */
export interface AnswerPaths {
  /**
   * The destination of limited broadcasts: 255.255.255.255; EDK2 ignores a subnet's own broadcast.
   */
  readonly broadcastAddress: string;
  /** 68, where clients listen, and 67, where relays do. */
  readonly clientPort: number;
  readonly relayPort: number;
}

export interface ProxySettings extends BootSettings, AnswerPaths {}

export type ProxyAnswer =
  | { readonly kind: 'reply'; readonly packet: DhcpPacket; readonly to: Peer }
  | Silence;

/** Whether a packet asks us for a boot at all, before anyone's permission is looked up (A2). */
export function readBootRequest(
  packet: DhcpPacket,
  service: ProxyService,
  from: Peer,
): { readonly kind: 'asked'; readonly request: BootRequest } | Silence {
  if (packet.op !== 'request') return silence('a reply');
  if (!isEthernet(packet)) return silence('not Ethernet');
  try {
    const messageType = readOption(packet, dhcpOption.messageType);
    if (!isAsked(service, messageType)) {
      return silence(`${messageType ?? 'BOOTP'} on the ${service} port`);
    }
    const side = new SideOptions(packet);
    const mac = macOf(packet);
    const client = bootClient(side, mac);
    if (client === undefined) return silence('no boot client');
    const pxe = readPxe(side, client);
    const { ignored } = side;
    return { kind: 'asked', request: { packet, service, from, client, mac, pxe, ignored } };
  } catch (error) {
    if (error instanceof DecodeError) return silence(error.message);
    throw error;
  }
}

/** The answer to a boot request. */
export function answerBootRequest(
  request: BootRequest,
  permission: DhcpBootPermission,
  settings: ProxySettings,
): ProxyAnswer {
  if (request.client.kind === 'uBoot' && permission === 'runner') return silence(hearsNoProxy);
  const parts = bootParts(request, permission, settings);
  return parts.kind === 'nothing' ? silence(parts.reason) : reply(request, settings, parts.parts);
}

const hearsNoProxy =
  'U-Boot hears no DHCP proxy: the server of its address has to name this one as next server';

function isAsked(service: ProxyService, messageType: MessageType | undefined): boolean {
  return service === 'dhcp'
    ? messageType === 'discover'
    : messageType === 'request' || messageType === 'inform';
}

function reply(request: BootRequest, settings: ProxySettings, parts: BootParts): ProxyAnswer {
  const discover = request.packet;
  const repeated = repeatedOptions(discover);
  if (typeof repeated === 'number') return silence(`identifiers of ${repeated} bytes`);
  const messageType = request.service === 'dhcp' ? 'offer' : 'ack';
  const options = new Map([
    writeOption(dhcpOption.messageType, messageType),
    writeOption(dhcpOption.serverIdentifier, settings.serverAddress),
    ...parts.options,
    ...repeated,
  ]);
  const packet: DhcpPacket = {
    ...discover,
    op: 'reply',
    hops: 0,
    seconds: 0,
    clientAddress: request.service === 'pxe' ? discover.clientAddress : '0.0.0.0',
    yourAddress: '0.0.0.0',
    nextServerAddress: settings.serverAddress,
    serverName: '',
    bootFile: parts.bootFile,
    options,
  };
  return { kind: 'reply', packet, to: replyTo(request, settings) };
}

/** A relay if there is one; else broadcast, or on the PXE port to the client's own address. */
function replyTo({ packet, service, from }: BootRequest, settings: ProxySettings): Peer {
  if (packet.relayAddress !== '0.0.0.0') {
    return { address: packet.relayAddress, port: settings.relayPort };
  }
  if (service === 'pxe' && from.address !== '0.0.0.0') return from;
  return { address: settings.broadcastAddress, port: settings.clientPort };
}

function silence(reason: string): Silence {
  return { kind: 'silence', reason };
}
