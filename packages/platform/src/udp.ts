/** Where a datagram came from or goes to. `port` 1–65535, `address` dotted IPv4 or IPv6. */
export interface UdpPeer {
  readonly address: string;
  readonly port: number;
}

export interface UdpSocket {
  /** The address and port the socket is bound to. */
  readonly local: UdpPeer;
  /** Sends one datagram; delivery errors are reported to `onError`, never thrown. */
  send(datagram: Uint8Array, to: UdpPeer): void;
  close(): void;
}

export interface UdpHandlers {
  /** `at` is the socket that it came by: with several interfaces, the one to answer by. */
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
   * Of one port at several addresses of this machine. `begin`: the port is free, and sockets that
   * `join` it may follow, each for an address of its own; without one, what is sent to any address
   * comes to the first.
   */
  readonly share?: 'begin' | 'join';
  /**
   * Only what arrives by the network interface of this name; what is sent leaves by it. No process
   * can ask for that without privilege: the socket has to have been handed to it.
   */
  readonly interface?: string;
}

export interface Udp {
  bind(options: UdpBind, handlers: UdpHandlers): Promise<UdpSocket>;
}
