/**
 * What a start of Node costs anyway: a socket that answers every packet with itself.
 *
 *   node bare.mjs PORT, as `rack.ts` bundles it
 */
import { createSocket } from 'node:dgram';

const [port = '67'] = process.argv.slice(2);
const socket = createSocket('udp4', (packet, from) => {
  packet[0] = 2;
  socket.send(packet, from.port, from.address);
});
socket.bind(Number(port), '127.0.0.1');
