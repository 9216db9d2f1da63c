/** Free ports, below those that the system gives to outgoing connections by itself. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const least = 20_000;
const most = 32_000;
const attemptsMax = 2_000;

/** What a port is tried for. */
const addresses = ['127.0.0.1', '127.255.255.255', '0.0.0.0'] as const;

/** Ports of which nothing listens on TCP or UDP now. Throws when there are not enough. */
export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  let candidate = least + Math.floor(Math.random() * (most - least));
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    candidate = candidate >= most ? least : candidate + 1;
    if (await isFree(candidate)) found.push(candidate);
    if (found.length === count) return found;
  }
  throw new Error(`${count} free ports were looked for between ${least} and ${most} in vain`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const sockets = addresses.map(() => createSocket('udp4'));
  try {
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
    for (const [index, socket] of sockets.entries()) {
      // One after the other: without address sharing they would be in each other's way.
      socket.bind(port, addresses[index]);
      await once(socket, 'listening');
      socket.close();
    }
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
