/**
 * The TFTP server on real sockets: one socket per transfer, as RFC 1350 §4 wants; every decision
 * is `@rackwright/tftp`'s.
 *
 * Y1 A request is decided on at once, from memory; opening its socket is the only wait.
 * Y2 A packet from a stranger's port is told so and does not disturb the transfer (RFC 1350 §4).
 * Y3 Each transfer's socket and timer are gone when it has ended.
 */
import { DecodeError } from '@rackwright/bytes';
import type { Cancel, Clock, Log, LogFields, Udp, UdpPeer, UdpSocket } from '@rackwright/platform';
import {
  decideRequest,
  decodePacket,
  encodePacket,
  type Lookup,
  type RequestDecision,
  type TftpLimits,
  type Transfer,
  type TransferEnd,
  type TransferStep,
  tftpError,
} from '@rackwright/tftp';
import { LineBudget } from './line-budget.ts';
import type { Gate } from './observation.ts';
import { parseLoaderPath } from './urls.ts';

/** Where requests come to. */
export interface TftpListen {
  readonly address: string;
  readonly port: number;
  /** The interface that the socket is bound to; absent: any. */
  readonly interface?: string;
  /**
   * What transfers send from: the address that clients were told, which is not always that of the
   * interface that their answers leave by.
   */
  readonly transferAddress: string;
}

export interface TftpShellOptions {
  readonly udp: Udp;
  readonly clock: Clock;
  readonly log: Log;
  readonly gate: Gate;
  readonly loaders: ReadonlyMap<string, Uint8Array>;
  /** At least one. The limits are for all of them together. */
  readonly listens: readonly TftpListen[];
  readonly limits: TftpLimits;
}

export interface TftpShell {
  /** The first one's. */
  readonly port: number;
  /** Transfers under way. */
  readonly transfers: number;
  close(): void;
}

const troubleLinesPerMinuteMax = 30;

export async function startTftp(options: TftpShellOptions): Promise<TftpShell> {
  const server = new TftpServer(options);
  const sockets: UdpSocket[] = [];
  const close = (): void => {
    for (const socket of sockets) socket.close();
    server.close();
  };
  try {
    for (const { transferAddress, ...listen } of options.listens) {
      const socket = await options.udp.bind(listen, {
        onDatagram: (datagram, from, at) => server.receive(at, datagram, from, transferAddress),
        onError: (error) => server.report({ error: error.message }, 'TFTP socket error'),
      });
      sockets.push(socket);
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    port: sockets[0]?.local.port ?? 0,
    get transfers() {
      return server.transfers;
    },
    close,
  };
}

class TftpServer {
  readonly #options: TftpShellOptions;
  readonly #trouble: LineBudget;
  readonly #active = new Set<ActiveTransfer>();
  /** The latest transfer of each client's address and port, and how many each address has; by what
   * transfers are sent from, as clients of two networks may have one address. */
  readonly #latest = new Map<string, ActiveTransfer>();
  readonly #perClient = new Map<string, number>();
  #closed = false;

  constructor(options: TftpShellOptions) {
    this.#options = options;
    this.#trouble = new LineBudget(options.clock, troubleLinesPerMinuteMax, 60_000);
  }

  get transfers(): number {
    return this.#active.size;
  }

  receive(socket: UdpSocket, datagram: Uint8Array, from: UdpPeer, transferAddress: string): void {
    const client = `${transferAddress} ${from.address}`;
    const key = `${client} ${from.port}`;
    const load = {
      all: this.#active.size,
      ofThisClient: this.#perClient.get(client) ?? 0,
      unanswered: this.#latest.get(key)?.unansweredRequest,
    };
    const { limits } = this.#options;
    const decision = decideRequest(datagram, load, limits, (name) => this.#lookUp(name));
    switch (decision.kind) {
      case 'start':
        this.#start({ decision, request: datagram, from, transferAddress });
        return;
      case 'refuse':
        socket.send(decision.reply, from);
        this.report({ client: from.address, reason: decision.reason }, 'TFTP request refused');
        return;
      case 'ignore':
        return;
    }
  }

  report(fields: LogFields, message: string): void {
    const { log } = this.#options;
    this.#trouble.spend((suppressed) => log.warn({ ...fields, suppressed }, message));
  }

  close(): void {
    this.#closed = true;
    for (const active of this.#active) active.close();
    this.#active.clear();
  }

  #lookUp(fileName: string): Lookup {
    const { mac, name } = parseLoaderPath(fileName);
    if (mac !== undefined) {
      const decision = this.#options.gate(mac, 'tftp');
      if (decision.kind === 'unknownHost') {
        return { kind: 'refused', code: tftpError.fileNotFound, message: 'unknown host' };
      }
      if (decision.kind === 'localBoot') {
        return { kind: 'refused', code: tftpError.accessViolation, message: 'no boot grant' };
      }
    }
    const bytes = this.#options.loaders.get(name);
    return bytes === undefined
      ? { kind: 'refused', code: tftpError.fileNotFound, message: 'no such file' }
      : { kind: 'file', bytes };
  }

  #start({ decision, request, from, transferAddress }: Begun): void {
    const { transfer, fileName } = decision;
    const { clock, log, udp } = this.#options;
    const client = `${transferAddress} ${from.address}`;
    const key = `${client} ${from.port}`;
    const onEnd = (end: TransferEnd): void => {
      this.#active.delete(active);
      if (this.#latest.get(key) === active) this.#latest.delete(key);
      this.#count(client, -1);
      log.debug({ client: from.address, file: fileName, end: end.kind }, 'TFTP transfer ended');
    };
    const whose = { transfer, request: request.slice(), client: from };
    const active = new ActiveTransfer({ ...whose, clock, onEnd });
    this.#active.add(active);
    this.#latest.set(key, active);
    this.#count(client, 1);
    active.open(udp, transferAddress).catch((error: unknown) => {
      this.report({ error: String(error) }, 'TFTP transfer has no socket');
      active.close();
      onEnd({ kind: 'aborted', message: 'no socket' });
    });
    if (this.#closed) active.close();
  }

  #count(client: string, change: 1 | -1): void {
    const count = (this.#perClient.get(client) ?? 0) + change;
    if (count > 0) this.#perClient.set(client, count);
    else this.#perClient.delete(client);
  }
}

interface Begun {
  readonly decision: RequestDecision & { kind: 'start' };
  readonly request: Uint8Array;
  readonly from: UdpPeer;
  readonly transferAddress: string;
}

interface ActiveTransferOptions {
  readonly transfer: Transfer;
  readonly request: Uint8Array;
  readonly client: UdpPeer;
  readonly clock: Clock;
  readonly onEnd: (end: TransferEnd) => void;
}

/** One transfer with its socket and its timer (Y3). */
class ActiveTransfer {
  readonly #transfer: Transfer;
  readonly #request: Uint8Array;
  readonly #client: UdpPeer;
  readonly #clock: Clock;
  readonly #onEnd: (end: TransferEnd) => void;
  #socket: UdpSocket | undefined;
  #cancelTimer: Cancel | undefined;
  #closed = false;

  constructor({ transfer, request, client, clock, onEnd }: ActiveTransferOptions) {
    this.#transfer = transfer;
    this.#request = request;
    this.#client = client;
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** The request that began this, until the client has acknowledged anything. */
  get unansweredRequest(): Uint8Array | undefined {
    return this.#transfer.answered ? undefined : this.#request;
  }

  async open(udp: Udp, address: string): Promise<void> {
    const socket = await udp.bind(
      { address, port: 0 },
      {
        onDatagram: (datagram, from) => this.#receive(datagram, from),
        // What could not be sent is sent again by the timer, or the transfer times out.
        onError: () => {},
      },
    );
    this.#socket = socket;
    if (this.#closed) socket.close();
    else this.#apply(this.#transfer.start());
  }

  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
    this.#socket?.close();
  }

  #receive(datagram: Uint8Array, from: UdpPeer): void {
    if (from.port !== this.#client.port || from.address !== this.#client.address) {
      const code = tftpError.unknownTransferId;
      const message = 'unknown transfer id';
      this.#socket?.send(encodePacket({ kind: 'error', code, message }), from);
      return;
    }
    try {
      this.#apply(this.#transfer.receive(decodePacket(datagram)));
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      // A mangled packet is a lost one: the timer repeats what it should have answered.
    }
  }

  #apply(step: TransferStep): void {
    for (const datagram of step.sends) this.#socket?.send(datagram, this.#client);
    if (step.end !== undefined) {
      this.close();
      this.#onEnd(step.end);
      return;
    }
    if (step.timerMs === undefined) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(step.timerMs, () => {
      if (!this.#closed) this.#apply(this.#transfer.timeout());
    });
  }
}
