/** The client of a packet, and the options that every answer repeats. */

import { type Mac, macOfBytes } from './mac.ts';
import { dhcpOption } from './options.ts';
import type { DhcpPacket } from './packet.ts';

/** Identifiers beyond this are not repeated but refused, so that every answer fits a frame. */
const repeatedBytesMax = 512;

/** Ethernet is the only kind of network that is served. */
export function isEthernet(packet: DhcpPacket): boolean {
  return packet.hardwareType === 1 && packet.hardwareAddress.length === 6;
}

/** The hardware address, lower case with colons. */
export function macOf(packet: DhcpPacket): Mac {
  return macOfBytes(packet.hardwareAddress);
}

/**
 * Identifiers that answers repeat: PXE 2.1 (97), RFC 6842 (61), RFC 3046 (82, which ends them), or
 * the number of their bytes when they are too many.
 */
export function repeatedOptions(
  request: DhcpPacket,
): readonly (readonly [code: number, value: Uint8Array])[] | number {
  const kinds = [dhcpOption.machineIdentifier, dhcpOption.clientIdentifier, dhcpOption.relayAgent];
  const options = kinds.flatMap(({ code }): [number, Uint8Array][] => {
    const value = request.options.get(code);
    return value === undefined ? [] : [[code, value]];
  });
  const bytes = options.reduce((sum, [, value]) => sum + value.length, 0);
  return bytes > repeatedBytesMax ? bytes : options;
}
