/**
 * `relay PORT SOCKET`: hands each TCP connection to 127.0.0.1:PORT on to a unix socket, byte by
 * byte. QEMU reaches iSCSI targets by TCP only, from a network namespace that the target, which is
 * part of the lab's own process, is not in.
 */
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

const [port = '', path = ''] = process.argv.slice(2);
const server = createServer((socket) => {
  const target = connect(path);
  const over = (): void => {
    socket.destroy();
    target.destroy();
  };
  pipeline(socket, target, over);
  pipeline(target, socket, over);
});
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
