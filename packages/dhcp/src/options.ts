/** The options that we read or write, by name: their codes and how their values are coded. */

import { address } from './option/address.ts';
import { addresses } from './option/addresses.ts';
import { architectures } from './option/architectures.ts';
import type { OptionCodec } from './option/codec.ts';
import { codes } from './option/codes.ts';
import { messageType } from './option/message-type.ts';
import { networkInterface } from './option/network-interface.ts';
import { pxe } from './option/pxe.ts';
import { ipxe, relayAgent } from './option/sub-options.ts';
import { text } from './option/text.ts';
import { clientIdentifier, machineIdentifier } from './option/typed-bytes.ts';
import { unsigned16, unsigned32 } from './option/unsigned.ts';
import { userClass } from './option/user-class.ts';
import type { DhcpPacket } from './packet.ts';

export interface OptionKind<Value> {
  readonly code: number;
  readonly codec: OptionCodec<Value>;
}

function option<Value>(code: number, codec: OptionCodec<Value>): OptionKind<Value> {
  return { code, codec };
}

export const dhcpOption = {
  subnetMask: option(1, address),
  routers: option(3, addresses),
  nameServers: option(6, addresses),
  hostName: option(12, text),
  domainName: option(15, text),
  broadcastAddress: option(28, address),
  pxe: option(43, pxe),
  requestedAddress: option(50, address),
  leaseSeconds: option(51, unsigned32),
  messageType: option(53, messageType),
  serverIdentifier: option(54, address),
  parameterList: option(55, codes),
  message: option(56, text),
  messageBytesMax: option(57, unsigned16),
  renewalSeconds: option(58, unsigned32),
  rebindingSeconds: option(59, unsigned32),
  vendorClass: option(60, text),
  clientIdentifier: option(61, clientIdentifier),
  tftpServerName: option(66, text),
  bootFileName: option(67, text),
  userClass: option(77, userClass),
  relayAgent: option(82, relayAgent),
  architectures: option(93, architectures),
  networkInterface: option(94, networkInterface),
  machineIdentifier: option(97, machineIdentifier),
  ipxe: option(175, ipxe),
} as const;

/** The option's value, or undefined when the packet has none. Throws DecodeError. */
export function readOption<Value>(packet: DhcpPacket, kind: OptionKind<Value>): Value | undefined {
  const bytes = packet.options.get(kind.code);
  return bytes === undefined ? undefined : kind.codec.decode(bytes);
}

/** The option as a packet holds it. Throws EncodeError. */
export function writeOption<Value>(
  kind: OptionKind<Value>,
  value: Value,
): readonly [code: number, bytes: Uint8Array] {
  return [kind.code, kind.codec.encode(value)];
}
