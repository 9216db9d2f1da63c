/**
 * Local calls over a Unix socket.
 *
 * O1 The socket has mode 0600; whoever may open it could read its folder's files as well.
 * O2 A request is one line of bounded length, so is its answer; a caller that says nothing is
 *    dropped after a bounded time, and callers at once are bounded.
 */
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { LocalCalls } from '../local-calls.ts';

const lineBytesMax = 64 * 1024;
const callersMax = 4;
const silenceMs = 5_000;
const ownerOnlyMode = 0o600;
/** Longest path that the system takes for a socket, bytes. */
const pathBytesMax = 107;

/** Local calls on this machine. */
export function nodeLocalCalls(): LocalCalls {
  return {
    listen: async (path, answer) => {
      if (Buffer.byteLength(path) > pathBytesMax) {
        throw new Error(`${path} is too long for a socket: at most ${pathBytesMax} bytes`);
      }
      await rm(path, { force: true });
      const server = createServer({ allowHalfOpen: true }, (socket) => serveOne(socket, answer));
      server.maxConnections = callersMax;
      await listening(server, path);
      await chmod(path, ownerOnlyMode);
      return { close: () => closing(server) };
    },
    call,
  };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

function closing(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function serveOne(socket: Socket, answer: (request: string) => Promise<string>): void {
  socket.setTimeout(silenceMs, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  readLine(socket)
    .then(
      async (request) => {
        // Making the answer may take as long as its caller waits for it.
        socket.setTimeout(0);
        socket.end(`${await answer(request)}\n`);
      },
      () => socket.destroy(),
    )
    .catch(() => socket.destroy());
}

function call(path: string, request: string, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer at ${path} within ${timeoutMs} ms`));
    }, timeoutMs);
    socket.once('connect', () => socket.write(`${request}\n`));
    readLine(socket)
      .then(resolve, (error: unknown) => (isAbsent(error) ? resolve(undefined) : reject(error)))
      .finally(() => {
        clearTimeout(timer);
        socket.destroy();
      });
  });
}

/** Nobody listens: there is no socket, or one that was left behind. */
function isAbsent(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
}

/** Up to the first line break; rejects when that does not come or is too far. */
function readLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    socket.on('data', (part: Buffer) => {
      bytes += part.length;
      parts.push(part);
      if (bytes > lineBytesMax) return reject(new Error('the line is too long'));
      if (!part.includes(10)) return;
      const text = Buffer.concat(parts).toString('utf8');
      resolve(text.slice(0, text.indexOf('\n')));
    });
    const hungUp = () => reject(new Error('it hung up without an answer'));
    socket.once('error', reject);
    socket.once('end', hungUp);
    socket.once('close', hungUp);
  });
}
