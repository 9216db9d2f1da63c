/**
 * What a DHCP proxy answers: boot parameters only, beside the server that gives addresses.
 *
 * A1 No answer assigns an address, and none claims to be the address server (PXE 2.1 §2.4: offers
 *    of a proxy have `yiaddr` 0 and the vendor class of the client).
 * A2 A discover is answered on the DHCP port, a request or inform on the PXE port, nothing else
 *    anywhere: requests on the DHCP port belong to the address server.
 * A3 iPXE gets its script, whatever else it claims to be; a boot loader would load itself for ever.
 * A4 Who may not start the runner: plain PXE firmware gets silence and so goes on to its disk, the
 *    others a script that exits to local boot. Hosts that nobody told us about get silence: their
 *    boot belongs to someone else on this network.
 * A5 Pure and total over decoded packets: a malformed option is silence with a reason.
 */
import { DecodeError } from '@rackwright/bytes';
import { type BootClient, type BootPlatform, bootClient } from './client.ts';
import { discoveryControl, type PxeOptions } from './option/pxe.ts';
import type { MessageType } from './option/message-type.ts';
import { dhcpOption, readOption, writeOption } from './options.ts';
import type { DhcpPacket } from './packet.ts';

/** Which of the two sockets a packet came to: DHCP (67) or PXE (4011). */
export type ProxyService = 'dhcp' | 'pxe';

export interface Peer {
  readonly address: string;
  readonly port: number;
}

/** A request that a boot server has to think about. */
export interface BootRequest {
  readonly packet: DhcpPacket;
  readonly service: ProxyService;
  readonly from: Peer;
  readonly client: BootClient;
  /** Lower case, with colons. */
  readonly mac: string;
  readonly pxe: PxeOptions | undefined;
}

export interface Silence {
  readonly kind: 'silence';
  readonly reason: string;
}

export type BootPermission = 'runner' | 'localBoot' | 'unknownHost';

export interface ProxySettings {
  /** Our IPv4 address on the hosts' network. */
  readonly serverAddress: string;
  /** Name of the boot loader for each platform that has one. */
  readonly loaders: Readonly<Partial<Record<BootPlatform, string>>>;
  /** Where iPXE finds its script. */
  scriptUrl(mac: string): string;
  /** Where UEFI HTTP boot finds a loader. */
  loaderUrl(mac: string, loader: string): string;
  /** The name by which TFTP serves a loader. */
  loaderPath(mac: string, loader: string): string;
  /** Where limited broadcasts go: 255.255.255.255; EDK2 ignores a subnet's own broadcast. */
  readonly broadcastAddress: string;
  /** 68, where clients listen, and 67, where relays do. */
  readonly clientPort: number;
  readonly relayPort: number;
}

export type ProxyAnswer =
  | { readonly kind: 'reply'; readonly packet: DhcpPacket; readonly to: Peer }
  | Silence;

/** The one server in the list and menu of plain PXE; numbers from 0x8000 on are free to use. */
const bootServerType = 0x8000;

/** Identifiers beyond this are not repeated but refused, so that every answer fits a frame. */
const echoBytesMax = 512;

/** Whether a packet asks us for a boot at all, before anyone's permission is looked up (A2). */
export function readBootRequest(
  packet: DhcpPacket,
  service: ProxyService,
  from: Peer,
): { readonly kind: 'asked'; readonly request: BootRequest } | Silence {
  if (packet.op !== 'request') return silence('a reply');
  if (packet.hardwareType !== 1 || packet.hardwareAddress.length !== 6) {
    return silence('not Ethernet');
  }
  try {
    const messageType = readOption(packet, dhcpOption.messageType);
    if (!isAsked(service, messageType)) {
      return silence(`${messageType ?? 'BOOTP'} on the ${service} port`);
    }
    const client = bootClient(packet);
    if (client === undefined) return silence('no boot client');
    const pxe = client.kind === 'httpBoot' ? undefined : readOption(packet, dhcpOption.pxe);
    const request = { packet, service, from, client, mac: macOf(packet), pxe };
    return { kind: 'asked', request };
  } catch (error) {
    if (error instanceof DecodeError) return silence(error.message);
    throw error;
  }
}

/** The answer to a boot request. */
export function answerBootRequest(
  request: BootRequest,
  permission: BootPermission,
  settings: ProxySettings,
): ProxyAnswer {
  if (permission === 'unknownHost') return silence('unknown host');
  const { client, mac } = request;
  if (client.kind === 'ipxe') {
    return reply(request, settings, 'PXEClient', settings.scriptUrl(mac), {
      discoveryControl: discoveryControl.bootFileAtOnce,
      others: [],
    });
  }
  if (client.kind === 'pxe' && permission === 'localBoot') return silence('no boot grant');
  const loader = settings.loaders[client.platform];
  if (loader === undefined) return silence(`no boot loader for ${client.platform}`);
  if (client.kind === 'httpBoot') {
    return reply(request, settings, 'HTTPClient', settings.loaderUrl(mac, loader), undefined);
  }
  const item = request.pxe?.bootItem;
  if (item !== undefined && item.type !== bootServerType) {
    return silence(`boot server type ${item.type}, ours is ${bootServerType}`);
  }
  const path = settings.loaderPath(mac, loader);
  return reply(request, settings, 'PXEClient', path, pxeOptions(item, settings.serverAddress));
}

function isAsked(service: ProxyService, messageType: MessageType | undefined): boolean {
  return service === 'dhcp'
    ? messageType === 'discover'
    : messageType === 'request' || messageType === 'inform';
}

/**
 * The full form of PXE: firmware that does not take the boot file at once finds the same server
 * in the list and the menu, chooses it without a prompt, and asks the PXE port with its number.
 */
function pxeOptions(bootItem: PxeOptions['bootItem'], serverAddress: string): PxeOptions {
  const { noBroadcast, noMulticast, bootFileAtOnce } = discoveryControl;
  return {
    discoveryControl: noBroadcast | noMulticast | bootFileAtOnce,
    bootServers: [{ type: bootServerType, addresses: [serverAddress] }],
    bootMenu: [{ type: bootServerType, description: 'Rackwright' }],
    menuPrompt: { timeoutSeconds: 0, prompt: 'Rackwright' },
    ...(bootItem === undefined ? {} : { bootItem }),
    others: [],
  };
}

function reply(
  request: BootRequest,
  settings: ProxySettings,
  vendorClass: 'PXEClient' | 'HTTPClient',
  bootFile: string,
  pxe: PxeOptions | undefined,
): ProxyAnswer {
  const asked = request.packet;
  const repeated = echoed(asked);
  const repeatedBytes = repeated.reduce((sum, [, value]) => sum + value.length, 0);
  if (repeatedBytes > echoBytesMax) return silence(`identifiers of ${repeatedBytes} bytes`);
  const messageType = request.service === 'dhcp' ? 'offer' : 'ack';
  const options = new Map([
    writeOption(dhcpOption.messageType, messageType),
    writeOption(dhcpOption.serverIdentifier, settings.serverAddress),
    writeOption(dhcpOption.vendorClass, vendorClass),
    // EDK2's HTTP boot reads the URL from the option, PXE firmware the name from the field.
    ...(vendorClass === 'HTTPClient' ? [writeOption(dhcpOption.bootFileName, bootFile)] : []),
    ...(pxe === undefined ? [] : [writeOption(dhcpOption.pxe, pxe)]),
    ...repeated,
  ]);
  const packet: DhcpPacket = {
    ...asked,
    op: 'reply',
    hops: 0,
    seconds: 0,
    clientAddress: request.service === 'pxe' ? asked.clientAddress : '0.0.0.0',
    yourAddress: '0.0.0.0',
    nextServerAddress: settings.serverAddress,
    serverName: '',
    bootFile,
    options,
  };
  return { kind: 'reply', packet, to: replyTo(request, settings) };
}

/** Identifiers that answers repeat: PXE 2.1 (97), RFC 6842 (61), RFC 3046 (82, which ends them). */
function echoed(asked: DhcpPacket): [number, Uint8Array][] {
  const kinds = [dhcpOption.machineIdentifier, dhcpOption.clientIdentifier, dhcpOption.relayAgent];
  return kinds.flatMap(({ code }): [number, Uint8Array][] => {
    const value = asked.options.get(code);
    return value === undefined ? [] : [[code, value]];
  });
}

/** A relay if there is one; else broadcast, or on the PXE port to the client's own address. */
function replyTo({ packet, service, from }: BootRequest, settings: ProxySettings): Peer {
  if (packet.relayAddress !== '0.0.0.0') {
    return { address: packet.relayAddress, port: settings.relayPort };
  }
  if (service === 'pxe' && from.address !== '0.0.0.0') return from;
  return { address: settings.broadcastAddress, port: settings.clientPort };
}

function macOf(packet: DhcpPacket): string {
  return Array.from(packet.hardwareAddress, (byte) => byte.toString(16).padStart(2, '0')).join(':');
}

function silence(reason: string): Silence {
  return { kind: 'silence', reason };
}
