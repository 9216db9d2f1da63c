/** Hosts that were seen in racks that are not theirs; in memory only, and a bounded number. */

const hostsMax = 256;
/** Told of one rack. */
const remarksMax = 8;

interface Seen {
  /** The host's own rack. */
  readonly rack: string;
  readonly seenIn: string;
  readonly mac: string;
}

/** What was seen last, by the name of the host. */
export class SeenElsewhere {
  readonly #seen = new Map<string, Seen>();

  note(host: string, seen: Seen): void {
    this.forget(host);
    this.#seen.set(host, seen);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > hostsMax && oldest !== undefined) this.#seen.delete(oldest);
  }

  forget(host: string): void {
    this.#seen.delete(host);
  }

  /** For people, of the rack that such a host belongs to or was seen in. */
  remarksOf(rack: string): string[] {
    return [...this.#seen]
      .filter(([, seen]) => seen.rack === rack || seen.seenIn === rack)
      .slice(0, remarksMax)
      .map(([host, { seenIn, mac }]) => {
        return `${host}: a machine that says it is this host netbooted in ${seenIn}, from ${mac}`;
      });
  }
}
