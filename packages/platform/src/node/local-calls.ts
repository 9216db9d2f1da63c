/**
 * Local calls over a Unix socket.
 *
 * O1 The socket has mode 0600; a process that may open it could read its folder's files as well.
 * O2 A request is one line of bounded length, so is its answer; a caller that sends nothing is
 *    dropped after a bounded time, and callers at once are bounded.
 * O3 A caller that has its answer may stay connected for a bounded time; the handler learns when
 *    the caller hangs up or dies. A listener that closes hangs up.
 */
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { LocalCalls, ReleasableAnswer } from '../local-calls.ts';

const lineBytesMax = 64 * 1024;
const callersMax = 4;
const silenceMs = 5_000;
/** Longest time that a caller stays on the line. */
const connectedMsMax = 6 * 3_600_000;
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
      const line: Line = { isEnding: false, connected: new Set() };
      const server = createServer({ allowHalfOpen: true }, (socket) =>
        serveOne(socket, line, answer),
      );
      server.maxConnections = callersMax;
      await listening(server, path);
      await chmod(path, ownerOnlyMode);
      return { close: () => closing(server, line) };
    },
    call: async (path, request, timeoutMs) => {
      const opened = await ask(path, request, timeoutMs);
      opened?.socket.destroy();
      return opened?.answer;
    },
    callAndStay: async (path, request, timeoutMs) => {
      const opened = await ask(path, request, timeoutMs);
      return opened === undefined ? undefined : releasable(opened);
    },
  };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

/** A caller that has its answer and stays connected. */
interface Line {
  isEnding: boolean;
  readonly connected: Set<Socket>;
}

function closing(server: Server, line: Line): Promise<void> {
  line.isEnding = true;
  for (const socket of line.connected) socket.destroySoon();
  return new Promise((resolve) => server.close(() => resolve()));
}

function serveOne(
  socket: Socket,
  line: Line,
  answer: (request: string, gone: AbortSignal) => Promise<string>,
): void {
  const gone = new AbortController();
  for (const event of ['end', 'close'] as const) socket.once(event, () => gone.abort());
  socket.once('close', () => line.connected.delete(socket));
  socket.setTimeout(silenceMs, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  readLine(socket)
    .then(
      async (request) => {
        // Making the answer may take as long as its caller waits for it.
        socket.setTimeout(0);
        const responseLine = `${await answer(request, gone.signal)}\n`;
        if (line.isEnding || gone.signal.aborted) return socket.end(responseLine);
        line.connected.add(socket);
        socket.setTimeout(connectedMsMax);
        socket.once('end', () => socket.end());
        return socket.write(responseLine);
      },
      () => socket.destroy(),
    )
    .catch(() => socket.destroy());
}

interface OpenAnswer {
  readonly answer: string;
  readonly socket: Socket;
}

function ask(path: string, request: string, timeoutMs: number): Promise<OpenAnswer | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer at ${path} within ${timeoutMs} ms`));
    }, timeoutMs);
    socket.once('connect', () => socket.write(`${request}\n`));
    readLine(socket)
      .then(
        (answer) => resolve({ answer, socket }),
        (error: unknown) => {
          socket.destroy();
          if (isAbsent(error)) resolve(undefined);
          else reject(error);
        },
      )
      .finally(() => clearTimeout(timer));
  });
}

function releasable({ answer, socket }: OpenAnswer): ReleasableAnswer {
  socket.on('error', () => socket.destroy());
  return {
    answer,
    release: () =>
      new Promise((resolve) => {
        if (socket.closed) return resolve();
        socket.once('close', () => resolve());
        socket.setTimeout(silenceMs, () => socket.destroy());
        socket.end();
      }),
  };
}

/** Nobody listens: there is no socket, or a stale one. */
function isAbsent(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
}

/** Up to the first line break; rejects when there is none or it is too far. */
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
