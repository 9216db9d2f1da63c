/** The source or destination of a datagram. `port` 1–65535, `address` dotted IPv4 or IPv6. */
export interface UdpPeer {
  readonly address: string;
  readonly port: number;
}

export interface UdpSocket {
  /** The address and port the socket is bound to. */
  readonly local: UdpPeer;
  /**
   * The kernel's buffer for waiting datagrams, bytes; of several sockets, the smallest one. The
   * kernel counts its own memory for a packet, which is more than the packet has. Absent: unknown.
   */
  readonly receiveBytes?: number;
  /** Sends one datagram; delivery errors are reported to `onError`, never thrown. */
  send(datagram: Uint8Array, to: UdpPeer): void;
  close(): void;
}

export interface UdpHandlers {
  /** `at` is the socket that received it: with several interfaces, the one to answer by. */
  onDatagram(datagram: Uint8Array, from: UdpPeer, at: UdpSocket): void;
  onError(error: Error): void;
}

export interface UdpBind {
  readonly address: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Allow sending to broadcast addresses. */
  readonly broadcast?: boolean;
  /**
   * One port at several addresses of this machine. `begin`: the port is free, and sockets that
   * `join` it may follow, each with its own address. Without such a socket the first one gets the
   * datagrams to all addresses.
   */
  readonly share?: 'begin' | 'join';
  /**
   * How many bytes can wait in the socket; the kernel may grant less. A socket that was handed to
   * this process keeps its own value. Absent: the kernel's default.
   */
  readonly receiveBytes?: number;
  /**
   * Receives only datagrams that arrive by the network interface of this name, and sends by it. No
   * process can request that without privilege: the socket has to have been handed to it.
   */
  readonly interface?: string;
}

/** One datagram, as the parts that it is made of, in their order. */
export type UdpParts = readonly Uint8Array[];

/** A socket for one peer: it receives from no other. */
export interface UdpConnection {
  /** The address and port the socket is bound to. */
  readonly local: UdpPeer;
  /**
   * Sends datagrams in their order. Their bytes are not copied: they must never change. A datagram
   * that cannot be sent is lost, as in a network; `onRefused` reports a peer that has gone.
   */
  send(datagrams: readonly UdpParts[]): void;
  close(): void;
}

export interface UdpConnectionHandlers {
  /** `at` is the connection that received it. */
  onDatagram(datagram: Uint8Array, at: UdpConnection): void;
  /**
   * The peer's machine reports that nobody has that port (ICMP port unreachable). Anybody who knows
   * both addresses and ports can forge that, and one packet may cause it more than once.
   */
  onRefused(): void;
}

export interface UdpConnect {
  /** Ours; that of all addresses lets the peer speak to any of them. */
  readonly address: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly peer: UdpPeer;
}

export interface Udp {
  bind(options: UdpBind, handlers: UdpHandlers): Promise<UdpSocket>;
  /** Rejects when the port is taken, and for a peer that has no port or is no single machine. */
  connect(options: UdpConnect, handlers: UdpConnectionHandlers): Promise<UdpConnection>;
}
