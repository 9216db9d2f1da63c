/**
 * A TFTP server as one writes it in Node in a morning: a socket for each transfer, a timer, blocks
 * and windows as asked, no checks. What a server on Node costs before anything is refused.
 *
 *   node test/bench/tftp/bare.main.ts FOLDER PORT [connected]
 *
 * `connected`: with what takes one line more and saves an address for each packet.
 */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder = '.', port = '69', how] = process.argv.slice(2);
const files = new Map<string, Buffer>();

function fileOf(name: string): Buffer {
  const known = files.get(name);
  if (known !== undefined) return known;
  const bytes = readFileSync(join(folder, name));
  files.set(name, bytes);
  return bytes;
}

function transfer(request: Buffer, client: RemoteInfo): void {
  const [name = '', , ...asked] = request.toString('latin1', 2).split('\0');
  const file = fileOf(name);
  const options = new Map<string, number>();
  for (let at = 0; at + 1 < asked.length; at += 2) {
    options.set(asked[at] ?? '', Number(asked[at + 1]));
  }
  const blockBytes = options.get('blksize') ?? 512;
  const windowBlocks = options.get('windowsize') ?? 1;
  const blocks = Math.floor(file.length / blockBytes) + 1;
  let acknowledged = options.size > 0 ? -1 : 0;
  const socket = createSocket('udp4');
  const send = (parts: readonly Uint8Array[]): void => {
    if (how === 'connected') socket.send(parts);
    else socket.send(parts, client.port, client.address);
  };
  const sendWindow = (): void => {
    if (acknowledged < 0) {
      const answer = [...options].map(([option, value]) => `${option}\0${value}\0`).join('');
      send([Buffer.from(`\0\x06${answer}`)]);
      return;
    }
    const last = Math.min(blocks, acknowledged + windowBlocks);
    for (let block = acknowledged + 1; block <= last; block += 1) {
      const header = Buffer.from([0, 3, (block >> 8) & 0xff, block & 0xff]);
      const bytes = file.subarray((block - 1) * blockBytes, block * blockBytes);
      send([header, bytes]);
    }
  };
  const timer = setInterval(sendWindow, 1_000);
  socket.on('message', (packet, from) => {
    if (from.port !== client.port || packet.readUInt16BE(0) !== 4) return;
    const block = packet.readUInt16BE(2);
    acknowledged = acknowledged < 0 ? 0 : acknowledged + ((block - acknowledged) & 0xffff);
    timer.refresh();
    if (acknowledged < blocks) return sendWindow();
    clearInterval(timer);
    socket.close();
  });
  // A client that has gone refuses what comes late.
  socket.on('error', () => undefined);
  if (how === 'connected') socket.connect(client.port, client.address, sendWindow);
  else sendWindow();
}

const server = createSocket('udp4', transfer);
server.bind(Number(port), '127.0.0.1');
