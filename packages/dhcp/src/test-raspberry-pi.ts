/** The DISCOVER of Raspberry Pi firmware, written from its documentation, option by option. */
import { type DhcpPacket, decodeDhcp, encodeDhcp } from './packet.ts';

const serial = [0x36, 0x0a, 0xef, 0x79];
const zero = '0.0.0.0';

export function piDiscover(mac: string): DhcpPacket {
  const packet: DhcpPacket = {
    ...{ op: 'request', hardwareType: 1, hops: 0, transactionId: 0x26f3_0339 },
    ...{ seconds: 0, flags: 0, serverName: '', bootFile: '' },
    ...{ clientAddress: zero, yourAddress: zero, nextServerAddress: zero, relayAddress: zero },
    hardwareAddress: Uint8Array.from(mac.split(':'), (pair) => Number.parseInt(pair, 16)),
    options: new Map([
      [53, Uint8Array.of(1)],
      [55, Uint8Array.of(43, 60, 67, 128, 129, 130, 131, 132, 133, 134, 135, 66, 1, 3)],
      [93, Uint8Array.of(0, 0)],
      [94, Uint8Array.of(1, 2, 1)],
      [97, Uint8Array.of(0, ...serial, ...serial, ...serial, ...serial)],
      [60, Uint8Array.from(Buffer.from('PXEClient:Arch:00000:UNDI:002001'))],
    ]),
  };
  return decodeDhcp(encodeDhcp(packet));
}
