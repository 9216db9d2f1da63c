/** Ports for servers of a comparison. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** A TCP port of loopback that nobody has now. */
export async function freeTcpPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const startMsMax = 60_000;
const lookEveryMs = 50;

/** Resolves when somebody accepts connections there; rejects after a minute. */
export async function listening(port: number): Promise<void> {
  const endMs = performance.now() + startMsMax;
  while (performance.now() < endMs) {
    const socket = connect(port, '127.0.0.1');
    const isThere = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isThere) return;
    await setTimeout(lookEveryMs);
  }
  throw new Error(`nobody listened at port ${port} within ${startMsMax / 1_000} s`);
}
