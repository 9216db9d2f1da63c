/**
 * Asks whether another server gives addresses. The question is a discover that seems to come
 * through a relay at our own address, so the answer is sent to the port on which we listen. The
 * other server reserves an address for it for a moment; nobody ever takes that address.
 */
import { type DhcpPacket, dhcpOption, writeOption } from '@rackwright/dhcp';

const unset = '0.0.0.0';

/** A locally administered MAC that contains our address, so that it is unique. */
export function probeMac(serverAddress: string): string {
  return Array.from(probeBytes(serverAddress), (byte) => byte.toString(16).padStart(2, '0')).join(
    ':',
  );
}

/** `nowMs` makes each question another one. */
export function probePacket(serverAddress: string, nowMs: number): DhcpPacket {
  return {
    op: 'request',
    hardwareType: 1,
    hops: 1,
    transactionId: Math.floor(nowMs) % 2 ** 32,
    seconds: 0,
    flags: 0,
    clientAddress: unset,
    yourAddress: unset,
    nextServerAddress: unset,
    relayAddress: serverAddress,
    hardwareAddress: probeBytes(serverAddress),
    serverName: '',
    bootFile: '',
    options: new Map([
      writeOption(dhcpOption.messageType, 'discover'),
      writeOption(dhcpOption.parameterList, [dhcpOption.subnetMask.code]),
    ]),
  };
}

function probeBytes(serverAddress: string): Uint8Array {
  return Uint8Array.of(0x02, 0x52, ...serverAddress.split('.').map(Number));
}
