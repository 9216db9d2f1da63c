/**
 * A block server: the Network Block Device protocol on a unix socket, as its specification says it
 * (doc/proto.md of the NBD project): fixed newstyle handshake, simple replies.
 *
 * 1. One medium, whatever name the client asks for; clients may come and go.
 * 2. When the last client goes, the machine has lost its power, and the medium is told: a machine
 *    that is switched off ends its QEMU, and with it the connection.
 * 3. Requests are answered in the order in which they came.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BlockStore, lengthOf, MediumError, type MediumFault } from './block-store.ts';
import { createByteQueue } from './byte-queue.ts';

const NBD_MAGIC = 0x4e42444d41474943n; // "NBDMAGIC"
const OPTION_MAGIC = 0x49484156454f5054n; // "IHAVEOPT"
const OPTION_REPLY_MAGIC = 0x3e889045565a9n;
const REQUEST_MAGIC = 0x25609513;
const REPLY_MAGIC = 0x67446698;

const HANDSHAKE_FLAGS = 0b11; // fixed newstyle, no zeroes
const OPTION = { exportName: 1, abort: 2, list: 3, info: 6, go: 7 } as const;
const OPTION_REPLY = { ack: 1, server: 2, info: 3, unsupported: 0x80000001 } as const;
/** What an answer to the options info and go tells. */
const TELLS = { export: 0, blockSize: 3 } as const;
const BLOCK_BYTES = { least: 512, preferred: 4096, most: 32 * 1024 * 1024 } as const;
/** Has flags, flush, forced unit access, trim, write zeroes. */
const TRANSMISSION_FLAGS = 0b1101101;
const OPTION_BYTES_MAX = 64 * 1024;

const COMMAND = { read: 0, write: 1, disconnect: 2, flush: 3, trim: 4, writeZeroes: 6 } as const;
const CHANGES: ReadonlySet<number> = new Set([COMMAND.write, COMMAND.trim, COMMAND.writeZeroes]);
const FLAG_FORCED_UNIT_ACCESS = 1;
const REQUEST_BYTES = 28;

/** Error numbers of the protocol. */
const ERROR = { notPermitted: 1, inputOutput: 5 } as const;
const ERROR_OF_FAULT: Readonly<Record<MediumFault, number>> = {
  unreadable: ERROR.inputOutput,
  unwritable: ERROR.inputOutput,
  writeProtected: ERROR.notPermitted,
};

/** A running block server. */
export interface NbdServer {
  /** From now on each request that changes something waits so long first, milliseconds. */
  slowDown(milliseconds: number): void;
  /** Bytes that were written, zeroed or discarded so far, as asked for. */
  changedBytes(): number;
  /** How many clients are there. */
  clients(): number;
  /** What went wrong with clients, for the log. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

interface Request {
  readonly flags: number;
  readonly command: number;
  readonly cookie: bigint;
  readonly offset: number;
  readonly length: number;
}

/** Serves `store` on the unix socket `path`. */
export async function startNbdServer(path: string, store: BlockStore): Promise<NbdServer> {
  let delayMs = 0;
  let changedBytes = 0;
  const counted: BlockStore = {
    ...store,
    change: (change) => {
      changedBytes += lengthOf(change);
      store.change(change);
    },
  };
  const pause = async (): Promise<void> => {
    if (delayMs > 0) await sleep(delayMs);
  };
  const sockets = new Set<Socket>();
  const complaints: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) store.powerOff();
    });
    serve(socket, counted, pause)
      .catch((error: unknown) => void complaints.push(String(error)))
      .finally(() => socket.destroy());
  });
  await listening(server, path);
  return {
    slowDown: (milliseconds) => {
      delayMs = milliseconds;
    },
    changedBytes: () => changedBytes,
    clients: () => sockets.size,
    complaints,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          store.close();
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function listening(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

type Take = (length: number) => Promise<Buffer | undefined>;

async function serve(socket: Socket, store: BlockStore, pause: () => Promise<void>): Promise<void> {
  const take: Take = createByteQueue(socket);
  if (!(await shakeHands(socket, take, store))) return;
  for (;;) {
    const header = await take(REQUEST_BYTES);
    if (header === undefined) return;
    const request = readRequest(header);
    if (request.command === COMMAND.disconnect) return;
    const isWrite = request.command === COMMAND.write;
    if (request.length > BLOCK_BYTES.most && (isWrite || request.command === COMMAND.read)) {
      throw new Error(`a transfer of ${request.length} bytes is longer than was agreed`);
    }
    const payload = isWrite ? await take(request.length) : Buffer.alloc(0);
    if (payload === undefined) return;
    if (CHANGES.has(request.command)) await pause();
    socket.write(answer(store, request, payload));
  }
}

async function shakeHands(socket: Socket, take: Take, store: BlockStore): Promise<boolean> {
  const greeting = Buffer.alloc(18);
  greeting.writeBigUInt64BE(NBD_MAGIC, 0);
  greeting.writeBigUInt64BE(OPTION_MAGIC, 8);
  greeting.writeUInt16BE(HANDSHAKE_FLAGS, 16);
  socket.write(greeting);
  const clientFlags = await take(4);
  if (clientFlags === undefined) return false;
  const noZeroes = (clientFlags.readUInt32BE(0) & 2) !== 0;
  for (;;) {
    const header = await take(16);
    if (header === undefined) return false;
    if (header.readBigUInt64BE(0) !== OPTION_MAGIC) throw new Error('an option without its magic');
    const option = header.readUInt32BE(8);
    const length = header.readUInt32BE(12);
    if (length > OPTION_BYTES_MAX) throw new Error(`an option of ${length} bytes`);
    if ((await take(length)) === undefined) return false;
    const reply = (type: number, words: Buffer = Buffer.alloc(0)): void =>
      void socket.write(optionReply(option, type, words));
    switch (option) {
      case OPTION.exportName:
        socket.write(Buffer.concat([exportWords(store), Buffer.alloc(noZeroes ? 0 : 124)]));
        return true;
      case OPTION.abort:
        reply(OPTION_REPLY.ack);
        return false;
      case OPTION.list:
        reply(OPTION_REPLY.server, Buffer.alloc(4)); // one export, whose name is empty
        reply(OPTION_REPLY.ack);
        break;
      case OPTION.info:
      case OPTION.go:
        reply(OPTION_REPLY.info, Buffer.concat([uint16(TELLS.export), exportWords(store)]));
        reply(OPTION_REPLY.info, blockSizeWords());
        reply(OPTION_REPLY.ack);
        if (option === OPTION.go) return true;
        break;
      default:
        reply(OPTION_REPLY.unsupported);
    }
  }
}

function optionReply(option: number, type: number, words: Buffer): Buffer {
  const header = Buffer.alloc(20);
  header.writeBigUInt64BE(OPTION_REPLY_MAGIC, 0);
  header.writeUInt32BE(option, 8);
  header.writeUInt32BE(type, 12);
  header.writeUInt32BE(words.length, 16);
  return Buffer.concat([header, words]);
}

/** Size and transmission flags. */
function exportWords(store: BlockStore): Buffer {
  const words = Buffer.alloc(10);
  words.writeBigUInt64BE(BigInt(store.sizeBytes), 0);
  words.writeUInt16BE(TRANSMISSION_FLAGS, 8);
  return words;
}

function blockSizeWords(): Buffer {
  const words = Buffer.alloc(14);
  words.writeUInt16BE(TELLS.blockSize, 0);
  words.writeUInt32BE(BLOCK_BYTES.least, 2);
  words.writeUInt32BE(BLOCK_BYTES.preferred, 6);
  words.writeUInt32BE(BLOCK_BYTES.most, 10);
  return words;
}

function uint16(value: number): Buffer {
  const words = Buffer.alloc(2);
  words.writeUInt16BE(value, 0);
  return words;
}

function readRequest(header: Buffer): Request {
  if (header.readUInt32BE(0) !== REQUEST_MAGIC) throw new Error('a request without its magic');
  return {
    flags: header.readUInt16BE(4),
    command: header.readUInt16BE(6),
    cookie: header.readBigUInt64BE(8),
    offset: Number(header.readBigUInt64BE(16)),
    length: header.readUInt32BE(24),
  };
}

function answer(store: BlockStore, request: Request, payload: Buffer): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32BE(REPLY_MAGIC, 0);
  header.writeBigUInt64BE(request.cookie, 8);
  try {
    return Buffer.concat([header, carryOut(store, request, payload)]);
  } catch (error) {
    if (!(error instanceof MediumError)) throw error;
    header.writeUInt32BE(ERROR_OF_FAULT[error.fault], 4);
    return header;
  }
}

/** Answers what was read; throws what the medium refuses. */
function carryOut(store: BlockStore, request: Request, payload: Buffer): Buffer {
  const { command, offset, length, flags } = request;
  const nothing = Buffer.alloc(0);
  if (offset + length > store.sizeBytes) {
    throw new MediumError(command === COMMAND.read ? 'unreadable' : 'unwritable');
  }
  switch (command) {
    case COMMAND.read:
      return store.read(offset, length);
    case COMMAND.write:
      store.change({ kind: 'write', offset, bytes: payload });
      break;
    case COMMAND.writeZeroes:
      store.change({ kind: 'zero', offset, length });
      break;
    case COMMAND.trim:
      store.change({ kind: 'discard', offset, length });
      break;
    case COMMAND.flush:
      store.flush();
      return nothing;
    default:
      throw new Error(`command ${command} was not offered`);
  }
  if ((flags & FLAG_FORCED_UNIT_ACCESS) !== 0) store.flush();
  return nothing;
}
