/**
 * Which MAC has which address. Only {@link LeaseBook.apply} changes it, so a decision about a
 * packet reads it without a change.
 *
 * L1 A MAC has at most one address, and an address at most one MAC. A change that would break this
 *    throws: it is a fault of ours, and no packet may cause it.
 * L2 An address that is set aside belongs to nobody until its time has passed.
 * L3 There is at most one entry for each address, so the book is bounded by the address plan.
 */
import type { Mac } from '../mac.ts';

export interface Lease {
  /** Lower case, with colons. */
  readonly mac: Mac;
  /** Dotted IPv4. */
  readonly address: string;
  /** False while the address is only offered, and after it was released. */
  readonly bound: boolean;
  /** Until when the address is the client's, milliseconds since the Unix epoch. */
  readonly untilMs: number;
}

/** An address that nobody gets for a time: an unknown machine seems to use it. */
export interface SetAside {
  readonly address: string;
  /** On whose word. */
  readonly mac: Mac;
  readonly untilMs: number;
}

/** All that a restart has to know. */
export interface LeaseRecords {
  readonly leases: readonly Lease[];
  readonly setAside: readonly SetAside[];
}

export type LeaseChange =
  /**
   * The lease replaces every earlier entry of its MAC. An offer need not survive a restart: nobody
   * uses it yet.
   */
  | { readonly kind: 'offered' | 'leased'; readonly lease: Lease }
  | { readonly kind: 'forgotten'; readonly mac: Mac }
  | ({ readonly kind: 'setAside' } & SetAside);

/** The view of the book for a decision. */
export interface LeaseView {
  leaseOf(mac: Mac): Lease | undefined;
  holderOf(address: string): Lease | undefined;
  isSetAside(address: string, nowMs: number): boolean;
  /** The number of addresses that are set aside because this MAC declined them. */
  setAsideBy(mac: Mac, nowMs: number): number;
}

export class LeaseBook implements LeaseView {
  readonly #byMac = new Map<Mac, Lease>();
  readonly #byAddress = new Map<string, Lease>();
  readonly #setAside = new Map<string, SetAside>();

  /** The book from its records; of two records that contradict each other the first one counts. */
  static from({ leases, setAside }: LeaseRecords): LeaseBook {
    const book = new LeaseBook();
    for (const lease of leases) {
      const taken = book.#byMac.has(lease.mac) || book.#byAddress.has(lease.address);
      if (!taken) book.#put(lease);
    }
    for (const one of setAside) book.#setAside.set(one.address, one);
    return book;
  }

  leaseOf(mac: Mac): Lease | undefined {
    return this.#byMac.get(mac);
  }

  holderOf(address: string): Lease | undefined {
    return this.#byAddress.get(address);
  }

  isSetAside(address: string, nowMs: number): boolean {
    const found = this.#setAside.get(address);
    return found !== undefined && found.untilMs > nowMs;
  }

  setAsideBy(mac: Mac, nowMs: number): number {
    let count = 0;
    for (const one of this.#setAside.values()) {
      if (one.mac === mac && one.untilMs > nowMs) count += 1;
    }
    return count;
  }

  apply(changes: readonly LeaseChange[]): void {
    for (const change of changes) this.#apply(change);
  }

  /** The records to write: bound or not, an address that was once given stays with its MAC. */
  records(nowMs: number): LeaseRecords {
    const setAside = [...this.#setAside.values()].filter(({ untilMs }) => untilMs > nowMs);
    return { leases: [...this.#byMac.values()], setAside };
  }

  #apply(change: LeaseChange): void {
    switch (change.kind) {
      case 'offered':
      case 'leased': {
        const { mac, address } = change.lease;
        const holder = this.#byAddress.get(address);
        if (holder !== undefined && holder.mac !== mac) {
          throw new Error(`${address} is leased to ${holder.mac}, not free for ${mac}`);
        }
        this.#forget(mac);
        this.#put(change.lease);
        return;
      }
      case 'forgotten':
        this.#forget(change.mac);
        return;
      case 'setAside':
        this.#setAside.set(change.address, setAsideOf(change));
    }
  }

  #put(lease: Lease): void {
    this.#byMac.set(lease.mac, lease);
    this.#byAddress.set(lease.address, lease);
    this.#setAside.delete(lease.address);
  }

  #forget(mac: Mac): void {
    const lease = this.#byMac.get(mac);
    if (lease === undefined) return;
    this.#byMac.delete(mac);
    this.#byAddress.delete(lease.address);
  }
}

function setAsideOf({ address, mac, untilMs }: SetAside): SetAside {
  return { address, mac, untilMs };
}
