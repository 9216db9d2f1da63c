/**
 * Hosts and listed machines that were seen in another rack than their own; only in memory, and
 * bounded.
 */
import type { RackName } from '@rackwright/messages';

const seenMax = 256;
/** The most remarks of one rack. */
const remarksMax = 8;

interface MacObservation {
  /** Its own rack. */
  readonly rack: RackName;
  readonly seenIn: RackName;
  readonly mac: string;
}

/** The latest observations, by the name of the host or machine. */
export class SeenElsewhere {
  readonly #seen = new Map<string, MacObservation>();

  note(name: string, seen: MacObservation): void {
    this.forget(name);
    this.#seen.set(name, seen);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > seenMax && oldest !== undefined) this.#seen.delete(oldest);
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }

  /** Remarks for people, of the rack that it belongs to or was seen in. */
  remarksOf(rack: RackName): string[] {
    return [...this.#seen]
      .filter(([, seen]) => seen.rack === rack || seen.seenIn === rack)
      .slice(0, remarksMax)
      .map(([name, { seenIn, mac }]) => {
        const kind = name.startsWith('hosts/') ? 'this host' : 'this machine';
        return `${name}: a machine that says it is ${kind} netbooted in ${seenIn}, from ${mac}`;
      });
  }
}
