/**
 * Wake-on-LAN: a magic packet to each MAC address, on each network that hosts boot from ("Magic
 * Packet Technology", AMD publication 20213: six bytes FF, then the address sixteen times). Nobody
 * answers one, so that it was sent says nothing of any machine.
 */
import { type Clock, pause, type Udp } from '@rackwright/platform';

/** "Discard", the usual port of such packets: no program has to receive them. */
const port = 9;
/** A packet may be lost without a report. */
const times = 3;
const betweenMs = 100;
const macsMax = 16;

/** Sends to every network; an unreachable network does not keep the packet from the others. */
export type Waker = (macs: readonly string[]) => Promise<void>;

/** `mac` as "52:54:00:12:34:56"; undefined: it is none. */
export function magicPacket(mac: string): Uint8Array | undefined {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac)) return undefined;
  const address = Buffer.from(mac.replaceAll(':', ''), 'hex');
  return Buffer.concat([Buffer.alloc(6, 0xff), ...Array<Buffer>(16).fill(address)]);
}

/**
 * `addresses` are ours on these networks. The kernel sends a limited broadcast by the interface
 * that has the address which the socket is bound to (ip(7)).
 */
export function wakerBy(udp: Udp, clock: Clock, addresses: readonly string[]): Waker {
  return async (macs) => {
    const packets = macs.slice(0, macsMax).flatMap((mac) => magicPacket(mac) ?? []);
    await Promise.allSettled(addresses.map((address) => sendFrom(udp, clock, address, packets)));
  };
}

async function sendFrom(
  udp: Udp,
  clock: Clock,
  address: string,
  packets: readonly Uint8Array[],
): Promise<void> {
  const ignored = { onDatagram: () => undefined, onError: () => undefined };
  const socket = await udp.bind({ address, port: 0, broadcast: true }, ignored);
  try {
    for (let time = 0; time < times; time += 1) {
      for (const packet of packets) socket.send(packet, { address: '255.255.255.255', port });
      await pause(clock, betweenMs);
    }
  } finally {
    socket.close();
  }
}
