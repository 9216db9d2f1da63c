/**
 * What is special about a Raspberry Pi's firmware: the names by which it asks for its files, and
 * its DHCP request.
 *
 * W1 The files are the same for all hosts and hold no secret: anybody may fetch them.
 * W2 A name is only looked up among the listed ones.
 */
import { isRaspberryPi, type Mac, type ServerRequest } from '@rackwright/dhcp';
import type { Clock } from '@rackwright/platform';

/** The files of the firmware by their names. */
export class RaspberryPiFiles {
  readonly #files: ReadonlyMap<string, Uint8Array>;

  constructor(files: ReadonlyMap<string, Uint8Array>) {
    this.#files = files;
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  /**
   * The file of a TFTP name without its MAC. `absent`: the firmware looks for it and goes on
   * without it. Undefined: the name is none of the firmware's.
   */
  find(mac: Mac | undefined, name: string): Uint8Array | 'absent' | undefined {
    const [, own] = serialFolder.exec(name) ?? [];
    const found = this.#files.get(name) ?? (own === undefined ? undefined : this.#files.get(own));
    if (found !== undefined) return found;
    if (own !== undefined) return 'absent';
    const mayAsk = mac === undefined || isRaspberryPi(mac);
    return mayAsk && firmwareName.test(name) ? 'absent' : undefined;
  }
}

/** The firmware puts its serial number before a name, unless it finds its first file without. */
const serialFolder = /^(?:[0-9a-f]{8}|[0-9a-f]{16})\/(.*)$/i;
/** The ends of names that no other firmware asks for. */
const firmwareName = /\.(?:bin|dat|dtbo?|elf|img|sig|txt|upd)$/;

/** A boot's DISCOVER and REQUEST are seconds apart. */
const transactionMs = 60_000;
const transactionsMax = 1_024;

/**
 * Tells the firmware's DHCP requests from those of the host's system. Its REQUEST has no vendor
 * class and looks like a system's. It has the transaction id of its DISCOVER (RFC 2131 §4.4.1).
 */
export class RaspberryPiRequests {
  readonly #clock: Pick<Clock, 'suspendAwareMs'>;
  readonly #begun = new Map<Mac, { readonly transactionId: number; readonly atMs: number }>();

  constructor(clock: Pick<Clock, 'suspendAwareMs'>) {
    this.#clock = clock;
  }

  /** The firmware of a Raspberry Pi has sent this DISCOVER. */
  discovered(mac: Mac, transactionId: number): void {
    this.#begun.delete(mac);
    this.#begun.set(mac, { transactionId, atMs: this.#clock.suspendAwareMs() });
    const [oldest] = this.#begun.keys();
    if (this.#begun.size > transactionsMax && oldest !== undefined) this.#begun.delete(oldest);
  }

  /** The request as one of the firmware, if it is one; else unchanged. */
  recognise(request: ServerRequest): ServerRequest {
    const { question, boot, mac, packet } = request;
    if (boot !== undefined || question.kind !== 'selecting') return request;
    const begun = this.#begun.get(mac);
    if (begun === undefined || begun.transactionId !== packet.transactionId) return request;
    if (this.#clock.suspendAwareMs() - begun.atMs > transactionMs) return request;
    const client = { kind: 'raspberryPi', platform: 'bios' } as const;
    return { ...request, boot: { client, mac, pxe: undefined } };
  }
}
