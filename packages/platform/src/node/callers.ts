/**
 * How many connections a client may have. Many hosts may have one address (NAT), so a connection
 * counts against its address only until its first request about a known host. From then on it
 * counts against that host at that address.
 *
 * C1 A host's name is no secret. So it gives room at the caller's own address only: nobody takes
 *    the connections of a host that calls from elsewhere.
 * C2 One address, or one IPv6 network of 64 bits, never has more than half of all connections, for
 *    any number of hosts: any host of such a network can take all of its addresses.
 */
import { networkOf } from '../caller-network.ts';

export interface CallerLimits {
  readonly connectionsMax: number;
  /** Connections of one address, before they have asked for a host. */
  readonly connectionsPerAddressMax: number;
  /** Connections of one host at one address. */
  readonly connectionsPerHostMax: number;
}

/** One connection. */
export interface CallerConnection {
  readonly address: string;
  /** The host of its first request. */
  host?: string;
}

export class Callers {
  readonly #limits: CallerLimits;
  readonly #unnamed = new Map<string, number>();
  /** By "ADDRESS HOST". */
  readonly #named = new Map<string, number>();
  /** By network (C2). */
  readonly #all = new Map<string, number>();

  constructor(limits: CallerLimits) {
    this.#limits = limits;
  }

  /** A new connection; undefined when its address or network has as many as it may have. */
  admit(address: string): CallerConnection | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#limits;
    const shareMax = Math.max(connectionsPerAddressMax, Math.ceil(connectionsMax / 2));
    if ((this.#unnamed.get(address) ?? 0) >= connectionsPerAddressMax) return undefined;
    const network = networkOf(address);
    if ((this.#all.get(network) ?? 0) >= shareMax) return undefined;
    count(this.#unnamed, address, 1);
    count(this.#all, network, 1);
    return { address };
  }

  /** It asks for this host; false when the host has as many connections there as it may have. */
  name(caller: CallerConnection, host: string): boolean {
    if (caller.host !== undefined) return true;
    const key = `${caller.address} ${host}`;
    if ((this.#named.get(key) ?? 0) >= this.#limits.connectionsPerHostMax) return false;
    caller.host = host;
    count(this.#named, key, 1);
    count(this.#unnamed, caller.address, -1);
    return true;
  }

  /** It is closed. To be called once. */
  leave({ address, host }: CallerConnection): void {
    count(this.#all, networkOf(address), -1);
    if (host === undefined) count(this.#unnamed, address, -1);
    else count(this.#named, `${address} ${host}`, -1);
  }
}

function count(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const now = (counts.get(key) ?? 0) + change;
  if (now > 0) counts.set(key, now);
  else counts.delete(key);
}
