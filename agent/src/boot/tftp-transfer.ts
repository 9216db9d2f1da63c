/** One TFTP transfer, on sockets of its own (RFC 1350 §4) or not; see tftp.ts for the rules. */
import { DecodeError } from '@rackwright/bytes';
import type {
  Udp,
  UdpConnection,
  UdpConnectionHandlers,
  UdpPeer,
  UdpSocket,
} from '@rackwright/platform';
import { decodePacket, type Transfer, type TransferEnd, type TransferStep } from '@rackwright/tftp';
import { anyAddress } from './config.ts';
import type { Deadline, Deadlines } from './deadlines.ts';

export interface ActiveTransferOptions {
  readonly transfer: Transfer;
  readonly request: Uint8Array;
  readonly client: UdpPeer;
  readonly deadlines: Deadlines;
  readonly onEnd: (end: TransferEnd) => void;
}

/** One transfer with its sockets and its deadline (Y3). */
export class ActiveTransfer {
  readonly #transfer: Transfer;
  readonly #request: Uint8Array;
  readonly #client: UdpPeer;
  readonly #onEnd: (end: TransferEnd) => void;
  readonly #deadline: Deadline;
  /** One for each address. The address that the client sends to comes first. */
  #sockets: UdpConnection[] = [];
  #closed = false;
  /** Nothing was sent yet, and datagrams that arrive do not belong to this transfer (Y4). */
  #waits = false;

  constructor({ transfer, request, client, deadlines, onEnd }: ActiveTransferOptions) {
    this.#transfer = transfer;
    this.#request = request;
    this.#client = client;
    this.#onEnd = onEnd;
    this.#deadline = deadlines.add(() => this.#timeout());
  }

  /** The request that began this, until the client has acknowledged anything. */
  get unansweredRequest(): Uint8Array | undefined {
    return this.#transfer.answered ? undefined : this.#request;
  }

  /** Rejects when the first address has no socket; of the others those count that have one. */
  async open(udp: Udp, [first = anyAddress, ...others]: readonly string[]): Promise<void> {
    const handlers: UdpConnectionHandlers = {
      onDatagram: (datagram, at) => this.#receive(datagram, at),
      onRefused: () => this.#apply(this.#transfer.refused()),
    };
    const peer = this.#client;
    const socket = await udp.connect({ address: first, port: 0, peer }, handlers);
    this.#sockets = [socket];
    const { port } = socket.local;
    for (const address of this.#closed ? [] : others) {
      // The interface may have lost the address. The first socket serves without it.
      const other = await udp.connect({ address, port, peer }, handlers).catch(() => undefined);
      if (other !== undefined) this.#sockets.push(other);
    }
    if (this.#closed) this.close();
    else this.#apply(this.#transfer.start(this.#sockets.length));
  }

  /**
   * By the socket of the port, beside other transfers (Y4): it hears only the datagrams that are
   * passed to it.
   */
  openAt(socket: UdpSocket, afterMs: number): void {
    this.#sockets = [connectionOver(socket, this.#client)];
    this.#waits = afterMs > 0;
    if (this.#waits) this.#deadline.set(afterMs);
    else this.#apply(this.#transfer.start());
  }

  /** A datagram for it, from the socket that {@link openAt} was given. */
  receive(datagram: Uint8Array): void {
    const [socket] = this.#sockets;
    if (!this.#waits && socket !== undefined) this.#receive(datagram, socket);
  }

  /** Its client has begun anew from the same port. */
  supersede(): void {
    this.close();
    this.#onEnd({ kind: 'aborted', message: 'asked anew' });
  }

  close(): void {
    this.#closed = true;
    this.#deadline.end();
    for (const socket of this.#sockets) socket.close();
  }

  #receive(datagram: Uint8Array, at: UdpConnection): void {
    // Y0: the address of ours at which its datagram arrived comes first.
    if (this.#sockets[0] !== at) {
      this.#sockets = [at, ...this.#sockets.filter((other) => other !== at)];
    }
    try {
      this.#apply(this.#transfer.receive(decodePacket(datagram)));
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      // A mangled packet counts as lost: after the deadline the packet that it should answer is
      // repeated.
    }
  }

  #timeout(): void {
    if (this.#waits) {
      this.#waits = false;
      this.#apply(this.#transfer.start());
      return;
    }
    // Y0: silence may mean that the client sent its request to the next of our addresses.
    const [first, ...others] = this.#sockets;
    if (first !== undefined && !this.#transfer.answered) this.#sockets = [...others, first];
    this.#apply(this.#transfer.timeout());
  }

  #apply({ sends, timerMs, end }: TransferStep): void {
    if (sends.length > 0) this.#sockets[0]?.send(sends);
    if (end !== undefined) {
      this.close();
      this.#onEnd(end);
    } else if (timerMs !== undefined) this.#deadline.set(timerMs);
  }
}

/** It sends by that socket, which stays open. */
function connectionOver(socket: UdpSocket, peer: UdpPeer): UdpConnection {
  return {
    local: socket.local,
    send: (datagrams) => {
      for (const parts of datagrams) socket.send(Buffer.concat(parts), peer);
    },
    close: () => {},
  };
}
