/**
 * Ports of clients that a server with one port has sent to. With a port for each transfer, that
 * port tells which transfer a datagram belongs to (RFC 1350 §4). With one port only the client's
 * port tells it. So a datagram of an earlier transfer could be taken for one of the next transfer
 * of the same port.
 *
 * U1 The first datagram from a port begins its transfer at once.
 * U2 A port that was used lately begins its next transfer after `lateMs`. Datagrams that arrive in
 *    between belong to the earlier transfer and are dropped.
 * U3 A repeated request counts as late while the last datagram of its port is at most `lateMs` old.
 *    A client that still wants the file repeats it.
 * U4 The memory is bounded: of ports, of requests of each, and in time.
 */
export interface UsedPortLimits {
  /** How much later a datagram may arrive than one that was sent after it. */
  readonly lateMs: number;
  /** From the last word of a port until it counts as never used. */
  readonly rememberedMs: number;
  /** Ports in memory; beyond it, the least recently heard one goes. */
  readonly portsMax: number;
}

export const usedPortLimitsDefault: UsedPortLimits = {
  lateMs: 250,
  rememberedMs: 60_000,
  portsMax: 4_096,
};

/** The judgement of a request. */
export type PortUse =
  | { readonly kind: 'first' }
  /** After this long, in which nothing of its port counts. */
  | { readonly kind: 'again'; readonly afterMs: number }
  /** A late duplicate: it is dropped. */
  | { readonly kind: 'late' };

interface UsedPort {
  /** The latest last. */
  requests: readonly Uint8Array[];
  heardAtMs: number;
}

/** The number of last requests of each port that are compared. */
const requestsMax = 3;

export class UsedPorts {
  readonly #limits: UsedPortLimits;
  /** By the client's address and port, the least recently heard first. */
  readonly #ports = new Map<string, UsedPort>();

  constructor(limits: UsedPortLimits = usedPortLimitsDefault) {
    this.#limits = limits;
  }

  /** The judgement of a read request; `nowMs` on a clock that only grows. Changes nothing. */
  judge(port: string, request: Uint8Array, nowMs: number): PortUse {
    const { lateMs, rememberedMs } = this.#limits;
    const used = this.#ports.get(port);
    if (used === undefined || nowMs - used.heardAtMs > rememberedMs) return { kind: 'first' };
    const isKnown = used.requests.some((one) => isSame(one, request));
    return isKnown && nowMs - used.heardAtMs <= lateMs
      ? { kind: 'late' }
      : { kind: 'again', afterMs: lateMs };
  }

  /** A transfer begins; the request's bytes are kept. */
  noteStart(port: string, request: Uint8Array, nowMs: number): void {
    const before = this.#ports.get(port)?.requests ?? [];
    const requests = [...before.filter((one) => !isSame(one, request)), request];
    this.#keep(port, { requests: requests.slice(-requestsMax), heardAtMs: nowMs });
  }

  /** Another datagram arrived from there. */
  noteDatagram(port: string, nowMs: number): void {
    const used = this.#ports.get(port);
    if (used === undefined) return;
    used.heardAtMs = nowMs;
    this.#keep(port, used);
  }

  #keep(port: string, used: UsedPort): void {
    this.#ports.delete(port);
    this.#ports.set(port, used);
    if (this.#ports.size <= this.#limits.portsMax) return;
    const oldest = this.#ports.keys().next().value;
    if (oldest !== undefined) this.#ports.delete(oldest);
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
