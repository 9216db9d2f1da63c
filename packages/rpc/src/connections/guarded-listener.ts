/**
 * The listening socket of a server: accepts connections, runs their TLS handshakes in bounded
 * slots, and hands over those whose handshake has succeeded.
 *
 * Invariants:
 * 1. Nothing is handed over that has not completed its handshake here: there is no plain text.
 * 2. Until it has a handshake slot, a connection costs nothing but its descriptor and a few
 *    received bytes. It gets no slot before it has sent the beginning of a handshake.
 * 3. A handshake that fails, or is not over in time, makes its address suspect for a while, unless
 *    it is known. A certificate that TLS accepts makes nobody known: it may be revoked.
 * 4. A connection that waits too long, or whose handshake lasts too long, is cut; a waiting
 *    connection ends when its peer closes it.
 * 5. The health check is a handshake within this process, which needs no room and no slot: a
 *    listener that is full of clients is healthy.
 */
import { createServer as createListener, type Server as Listener, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import {
  createServer as createTlsServer,
  connect as dialTls,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls';
import { type Clock, networkOf } from '@rackwright/platform';
import type { RpcLimits } from '../wire/limits.ts';
import {
  type KeyAndChain,
  type Protocols,
  type ServerTls,
  secureContext,
  tlsOptions,
} from '../wire/tls.ts';
import { HandshakeSlots, type ListenerCounts, type PendingConnection } from './handshake-slots.ts';

export interface GuardedListenerOptions {
  readonly address: string;
  readonly port: number;
  readonly tls: ServerTls;
  readonly limits: RpcLimits;
  readonly clock: Clock;
  readonly protocols: Protocols;
  /** Takes a connection whose handshake is over. */
  readonly handOver: (socket: TLSSocket) => void;
}

export interface GuardedListener {
  readonly port: number;
  readonly counts: ListenerCounts;
  /** Undefined when it listens and shakes hands (invariant 5), else the problem. */
  problem(timeoutMs: number): Promise<string | undefined>;
  /** The peer of this connection ("address:port") has authenticated. */
  vouchFor(peerAddress: string): void;
  /** Uses another key, chain and client CA for new handshakes. */
  replaceCertificate(next: KeyAndChain & Partial<Pick<ServerTls, 'clientCaPem'>>): void;
  /** Takes no more connections. Those that were handed over stay. */
  close(): void;
}

/** Connections that the system may hold for us before we see them. */
const backlog = 4_096;

/** Starts listening. Rejects with a sentence that names the address when it cannot. */
export async function openGuardedListener(
  options: GuardedListenerOptions,
): Promise<GuardedListener> {
  const { clock, limits, handOver } = options;
  let { tls } = options;
  const slots = new HandshakeSlots(limits, clock);
  /** By the address and port of their peer. */
  const present = new Map<string, ArrivedConnection>();
  const tlsServer = createTlsServer(tlsOptions(tls, limits.handshakeMs, options.protocols));
  tlsServer.on('secureConnection', (socket) => {
    const arrived = present.get(peerOf(socket));
    arrived?.over('in');
    // A later break appears as a closed stream, which the server notices by itself.
    socket.on('error', () => undefined);
    handOver(socket);
  });
  tlsServer.on('tlsClientError', (_error, socket) => {
    present.get(peerOf(socket))?.failed();
    socket.destroy();
  });
  const listener = createListener({ pauseOnConnect: true, noDelay: true }, (socket) => {
    const peer = peerOf(socket);
    const arrived = new ArrivedConnection(socket, limits, clock);
    present.set(peer, arrived);
    socket.once('close', () => {
      if (present.get(peer) === arrived) present.delete(peer);
    });
    if (!arrived.enter(slots, () => tlsServer.emit('connection', socket))) present.delete(peer);
  });
  const port = await listen(listener, options);
  return {
    port,
    get counts() {
      return slots.counts;
    },
    problem: async (timeoutMs) =>
      listener.listening
        ? await handshakeProblem(tlsServer, clock, timeoutMs)
        : 'TLS does not listen any more',
    vouchFor: (peerAddress) => present.get(peerAddress)?.vouched(),
    replaceCertificate: (next) => {
      tls = { ...tls, ...next };
      tlsServer.setSecureContext(secureContext(tls));
    },
    close: () => {
      listener.close();
      for (const arrived of present.values()) if (!arrived.isOver) arrived.cut();
    },
  };
}

/** Invariant 5. No data is sent over it, so its certificate is not checked. */
function handshakeProblem(
  tlsServer: TlsServer,
  clock: Clock,
  timeoutMs: number,
): Promise<string | undefined> {
  const [own, other] = duplexPair();
  return new Promise((resolve) => {
    const settle = (text?: string): void => {
      cancel();
      for (const end of [socket, own, other]) end.destroy();
      resolve(text);
    };
    const cancel = clock.after(timeoutMs, () => settle(`TLS: no answer within ${timeoutMs} ms`));
    const options = { socket: own, ALPNProtocols: ['h2'], rejectUnauthorized: false };
    const socket = dialTls(options, () => settle());
    socket.on('error', (cause) => settle(`TLS: ${cause.message}`));
    socket.once('close', () => settle('TLS: the connection was closed'));
    tlsServer.emit('connection', other);
  });
}

/** Bytes that are read before a connection has its slot; reading stops there until then. */
const earlyBytesMax = 8 * 1024;

/** A connection from its arrival on. */
class ArrivedConnection {
  readonly #socket: Socket;
  readonly #limits: RpcLimits;
  readonly #clock: Clock;
  #connection: PendingConnection | undefined;
  #over = false;
  #hasBegun = false;
  #penalty = false;
  #cancel: () => void = () => undefined;
  /** Bytes that were received before it has its slot. */
  readonly #early: Buffer[] = [];

  constructor(socket: Socket, limits: RpcLimits, clock: Clock) {
    this.#socket = socket;
    this.#limits = limits;
    this.#clock = clock;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** False when it was turned away. */
  enter(slots: HandshakeSlots, speak: () => void): boolean {
    const socket = this.#socket;
    const { remoteAddress } = socket;
    socket.on('error', () => undefined);
    this.#cancel = this.#clock.after(this.#limits.handshakeWaitMs, () => this.cut());
    const connection =
      remoteAddress === undefined
        ? undefined
        : slots.arrive(networkOf(remoteAddress), {
            begin: () => this.#begin(speak),
            end: () => this.cut(),
          });
    if (connection === undefined) {
      this.over('gone');
      socket.resetAndDestroy();
      return false;
    }
    this.#connection = connection;
    socket.once('close', () => {
      if (this.#hasBegun && !this.#over) this.failed();
      this.over('gone');
      // After a failed handshake the slot is held longer than the connection.
      if (this.#penalty) this.#clock.after(this.#limits.failedSlotMs, () => connection.left());
      else connection.left();
    });
    this.#listen(connection);
    return true;
  }

  /** Reads until it has its slot. So its end is noticed, and also that it sends nothing. */
  #listen(connection: PendingConnection): void {
    let bytes = 0;
    let wanted = Number.NaN;
    this.#socket.on('data', (piece: Buffer) => {
      this.#early.push(piece);
      bytes += piece.length;
      if (bytes > earlyBytesMax) this.#socket.pause();
      if (Number.isNaN(wanted)) wanted = recordBytes(this.#early);
      if (bytes >= Math.min(wanted, earlyBytesMax)) connection.ready();
    });
    this.#socket.resume();
  }

  #begin(speak: () => void): void {
    this.#cancel();
    if (this.#socket.destroyed) return;
    this.#socket.removeAllListeners('data').pause();
    if (this.#early.length > 0) this.#socket.unshift(Buffer.concat(this.#early.splice(0)));
    this.#hasBegun = true;
    this.#cancel = this.#clock.after(this.#limits.handshakeSlotMs, () => {
      this.#connection?.slotOver();
    });
    speak();
  }

  /** Its handshake has failed: its slot is given back later. */
  failed(): void {
    if (this.#over) return;
    this.#penalty = true;
    this.#connection?.failed();
    this.over('gone');
  }

  /** Its handshake is over, or it is gone. */
  over(how: 'in' | 'gone'): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancel();
    if (how === 'in') this.#connection?.entered();
  }

  /** Its peer has authenticated. */
  vouched(): void {
    this.#connection?.vouched();
  }

  cut(): void {
    this.#socket.destroy();
  }
}

/** The bytes before a record of TLS: its type, its version, its length. */
const recordHeadBytes = 5;
const handshakeRecord = 22;

/** The length of the first record: 0 if this is no record, NaN while it is unknown. */
function recordBytes(pieces: readonly Buffer[]): number {
  const received = Buffer.concat(pieces);
  if (received[0] !== handshakeRecord) return received.length === 0 ? Number.NaN : 0;
  if (received.length < recordHeadBytes) return Number.NaN;
  return recordHeadBytes + received.readUInt16BE(3);
}

/** Tells a connection from every other that is open; as grpc-js names a call's other end. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

function listen(listener: Listener, { address, port }: GuardedListenerOptions): Promise<number> {
  const host = address.includes(':') ? `[${address}]` : address;
  return new Promise((resolve, reject) => {
    listener.once('error', (error) => {
      reject(new Error(`cannot listen on ${host}:${port}: ${error.message}`));
    });
    listener.listen({ host: address, port, backlog }, () => {
      const bound = listener.address();
      listener.on('error', () => undefined);
      resolve(typeof bound === 'object' && bound !== null ? bound.port : port);
    });
  });
}
