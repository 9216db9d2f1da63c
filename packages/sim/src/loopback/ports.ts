/**
 * Ports of loopback for programs whose configuration sets their port.
 *
 * P1 They are below the range that the kernel uses for outgoing connections, so that none is taken
 *    while its program is being started again.
 * P2 They belong to the requesting process until it ends: no other requester gets them.
 * P3 Nothing listens on them, neither TCP nor UDP, when they are handed out.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const firstPort = 12_000;
const blockPorts = 16;
const blocks = 1_280;

/** What a port is tried for. */
const addresses = ['127.0.0.1', '127.255.255.255', '0.0.0.0'] as const;

/** Ports of a block of this process that were not handed out. */
const left: number[] = [];

/** As many ports, all different. Throws when there are not enough. */
export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = left.shift();
    if (port === undefined) left.push(...(await claimBlock()));
    else if (await isFree(port)) found.push(port);
  }
  return found;
}

/** The ports of a block that no process has claimed; where it begins to look is chance. */
async function claimBlock(): Promise<number[]> {
  const start = randomInt(blocks);
  for (let step = 0; step < blocks; step += 1) {
    const block = (start + step) % blocks;
    if (!(await isClaimed(block))) continue;
    return Array.from({ length: blockPorts }, (_, index) => firstPort + block * blockPorts + index);
  }
  throw new Error(`all ports from ${firstPort} to ${firstPort + blocks * blockPorts} are claimed`);
}

/** Claims a block by listening on a name that the kernel forgets with the process (P2). */
async function isClaimed(block: number): Promise<boolean> {
  const claim = createServer();
  claim.listen(`\0rackwright-ports-${block}`);
  try {
    await once(claim, 'listening');
  } catch {
    return false;
  }
  claim.unref();
  return true;
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
