/**
 * A worker thread that sends malformed packets to a boot path at a steady rate. It counts the
 * packets in shared memory and stops when a flag there says so.
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { workerData } from 'node:worker_threads';

export interface FloodOrder {
  /** Two 32-bit counters: packets sent, and 1 when the flood shall end. */
  readonly shared: SharedArrayBuffer;
  readonly packetsPerSecond: number;
  readonly udpPorts: readonly number[];
  readonly httpPort: number;
}

const order = workerData as FloodOrder;
const counters = new Int32Array(order.shared);
const socket = createSocket('udp4');
let state = 12_345;

function chance(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
  return (state >>> 8) % below;
}

/** Noise, the beginning of a DHCP packet with a mangled rest, or a TFTP request without an end. */
function malformed(): Uint8Array {
  const packet = Uint8Array.from({ length: 1 + chance(600) }, () => chance(256));
  if (packet.length > 245 && chance(2) === 0) {
    packet.set([1, 1, 6]);
    packet.set([0x63, 0x82, 0x53, 0x63, 53, 1, 1, 60, 250], 236);
  } else if (packet.length > 4 && chance(2) === 0) {
    packet.fill(0x61);
    packet.set([0, 1 + chance(6)]);
  }
  return packet;
}

const startedMs = performance.now();
const pace = setInterval(() => {
  if (Atomics.load(counters, 1) === 1) {
    clearInterval(pace);
    socket.close();
    return;
  }
  const due = ((performance.now() - startedMs) / 1_000) * order.packetsPerSecond;
  // A machine that stood still must not be repaid in one burst that fits no socket.
  const burst = Math.min(due - Atomics.load(counters, 0), order.packetsPerSecond / 20);
  for (let sent = 0; sent < burst; sent += 1) {
    socket.send(malformed(), order.udpPorts[chance(order.udpPorts.length)] ?? 9, '127.0.0.1');
    Atomics.add(counters, 0, 1);
  }
  if (chance(10) === 0) {
    const connection = connect(order.httpPort, '127.0.0.1', () => connection.end(malformed()));
    connection.on('error', () => {});
    connection.resume();
  }
}, 5);
