/**
 * Connections whose bytes are read into memory that is used again.
 *
 * Node makes a buffer of 64 KiB for each read. The parser of HTTP copies the body out of it, and
 * leaves it to the collector, which then runs once for some megabytes of an image.
 *
 * R1 Listeners for 'data' are handed a view: it is theirs until they return.
 */
import type { OnReadOpts, Socket } from 'node:net';

/** Read at once, bytes: more than Node's default, so an image needs fewer reads. */
const readBytes = 256 * 1024;
/** Memory that no connection uses now. */
const spareMax = 4;
const spare: Buffer[] = [];

/** Makes a connection by `connect`, which passes its argument on as the option `onread`. */
export function readInto<Connection extends Socket>(
  connect: (onread: OnReadOpts) => Connection,
): Connection {
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(readBytes);
  const socket: Connection = connect({
    buffer,
    callback: (length) => {
      socket.emit('data', buffer.subarray(0, length));
      return true;
    },
  });
  socket.once('close', () => {
    if (spare.length < spareMax) spare.push(buffer);
  });
  return socket;
}
