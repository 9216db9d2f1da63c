/**
 * A DHCP server as one writes it in Node in an hour: it reads what it needs by position, looks the
 * host up and fills in an answer that was made before. No checks, no leases. What a server on Node
 * costs before it does anything.
 *
 *   node test/bench/dhcp/bare.main.ts PORT RELAY_PORT HOSTS
 */
import { createSocket } from 'node:dgram';

const [port = '67', relayPort = '67', hosts = '48'] = process.argv.slice(2);
const answers = new Map<number, Buffer>();
for (let index = 0; index < Number(hosts); index += 1) {
  const answer = Buffer.alloc(416);
  answer.set([2, 1, 6]);
  answer.set([127, 0, 1 + (index >> 8), index & 0xff], 16);
  answer.set([0x63, 0x82, 0x53, 0x63, 53, 1, 2, 54, 4, 127, 0, 0, 1, 51, 4, 0, 0, 14, 16], 236);
  answer[412] = 255;
  answers.set(index, answer);
}

const server = createSocket({
  type: 'udp4',
  lookup: (name, _options, found) => found(null, name, 4),
});
server.on('message', (packet) => {
  const answer = answers.get(packet.readUInt16BE(32));
  const kind = packet[242];
  if (answer === undefined || (kind !== 1 && kind !== 3)) return;
  const sent = Buffer.from(answer);
  packet.copy(sent, 4, 4, 8);
  packet.copy(sent, 24, 24, 44);
  sent[242] = kind === 1 ? 2 : 5;
  server.send(sent, Number(relayPort), packet.subarray(24, 28).join('.'));
});
server.bind(Number(port), '127.0.0.1');
