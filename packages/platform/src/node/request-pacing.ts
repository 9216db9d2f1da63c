/**
 * Hands an HTTP connection's bytes to Node's parser request by request, and stops in between when
 * there are enough requests: the parser itself would take all requests of a piece at once, some
 * thousands of 64 KiB, and keep an object for each.
 *
 * G1 Nothing is dropped or reordered. Bytes that may not be fed yet wait here, one piece of the
 *    socket; the rest waits in the kernel, and then at the client.
 * G2 A head is handed on without a stop in its middle: the parser's clock for slow heads runs only
 *    while the server waits for the client.
 * G3 When Node has paused the socket for reasons of its own, only Node resumes it.
 */
import type { Socket } from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');
const nothing: Buffer = Buffer.alloc(0);

/**
 * Replaces the listeners for a socket's data. Returns the function to call when `mayFeed` may have
 * become true again.
 */
export function paceRequests(socket: Socket, mayFeed: () => boolean): () => void {
  const listeners = socket.listeners('data');
  let pending = nothing;
  let isPausing = false;
  let isFeeding = false;
  const feed = (): void => {
    if (isFeeding) return;
    isFeeding = true;
    while (pending.length > 0 && mayFeed() && !socket.isPaused() && !socket.destroyed) {
      const end = pending.indexOf(headEnd);
      const length = end < 0 ? pending.length : end + headEnd.length;
      // Mostly there is one request, all of the piece.
      const piece = length === pending.length ? pending : pending.subarray(0, length);
      pending = length === pending.length ? nothing : pending.subarray(length);
      for (const listener of listeners) listener.call(socket, piece);
    }
    isFeeding = false;
    if (pending.length === 0 || socket.isPaused()) return;
    isPausing = true;
    socket.pause();
  };
  socket.removeAllListeners('data');
  socket.on('data', (piece: Buffer) => {
    pending = pending.length === 0 ? piece : Buffer.concat([pending, piece]);
    feed();
  });
  socket.on('resume', feed);
  return () => {
    if (!isPausing || !mayFeed()) return;
    isPausing = false;
    socket.resume();
    feed();
  };
}
