/**
 * The leases on disk, so that hosts keep their addresses when the agent starts again.
 *
 * F1 Nothing waits for the disk: a change is in force at once and written soon after. A change that
 *    a power cut loses is harmless: hosts keep the addresses that they use, and decline those in
 *    use.
 * F2 A missing or unreadable file means an empty book and a line in the log, never a failure.
 * F3 Time in the file never runs backwards, even when the machine's clock is set back
 *    (`steadyTime`).
 */
import {
  type AddressPlan,
  addressNumber,
  asMac,
  canonicalMac,
  isInPlan,
  type Lease,
  type LeaseBook,
  type LeaseRecords,
  type Mac,
  type SetAside,
} from '@rackwright/dhcp';
import { type Cancel, type Clock, ConfigReader, type Disk, type Log } from '@rackwright/platform';

/** At most one write in this time, however many clients there are. */
const writeSpacingMs = 1_000;
const retryMs = 30_000;
const ownerOnlyMode = 0o600;
const formatVersion = 1;

export interface LeaseFileParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly path: string;
  /** Read while there is nothing at `path`; never written. */
  readonly formerPath?: string | undefined;
}

/** The leases of the last life. */
export interface WrittenLeases {
  readonly records: LeaseRecords;
  readonly writtenAtMs: number;
}

/** The leases of the previous start, as far as the plan still allows them. */
export async function readLeases(parts: LeaseFileParts, plan: AddressPlan): Promise<WrittenLeases> {
  const { path, formerPath } = parts;
  const written = await readFrom(parts, path, plan);
  if (written !== undefined) return written;
  const former = formerPath === undefined ? undefined : await readFrom(parts, formerPath, plan);
  return former ?? nothingWritten;
}

/** Undefined when there is no such file. */
async function readFrom(
  { disk, log }: LeaseFileParts,
  path: string,
  plan: AddressPlan,
): Promise<WrittenLeases | undefined> {
  try {
    const bytes = await disk.read(path);
    if (bytes === undefined) return undefined;
    const { records, writtenAtMs } = parseLeases(new TextDecoder().decode(bytes));
    const leases = records.leases.filter(({ mac, address }) => isInPlan(plan, mac, address));
    return { records: { ...records, leases }, writtenAtMs };
  } catch (error) {
    log.warn({ path }, 'the kept leases cannot be read', error);
    return nothingWritten;
  }
}

const nothingWritten: WrittenLeases = { records: { leases: [], setAside: [] }, writtenAtMs: 0 };

/** How long the machine's wall clock is trusted between two reads of the other clock. */
const wallTrustMs = 50;

/**
 * Wall time of the start, then advanced by a clock that nobody can set; milliseconds. It never goes
 * back. That clock is a file, so reading it for each packet would be expensive. Between its reads
 * the wall clock measures the time that has passed. So a step of the wall clock causes an error of
 * {@link wallTrustMs} at most, and only for that long.
 */
export function steadyTime(clock: Clock, notBeforeMs: number): () => number {
  const startMs = Math.max(clock.nowMs(), notBeforeMs);
  const startSuspendAwareMs = clock.suspendAwareMs();
  let read = { wallMs: clock.nowMs(), steadyMs: startMs };
  let latestMs = startMs;
  return () => {
    const wallMs = clock.nowMs();
    const sinceMs = wallMs - read.wallMs;
    if (sinceMs < 0 || sinceMs >= wallTrustMs) {
      read = { wallMs, steadyMs: startMs + clock.suspendAwareMs() - startSuspendAwareMs };
    }
    latestMs = Math.max(latestMs, Math.floor(read.steadyMs + wallMs - read.wallMs));
    return latestMs;
  };
}

export class LeaseFile {
  readonly #parts: LeaseFileParts;
  readonly #book: LeaseBook;
  readonly #nowMs: () => number;
  #timer: Cancel | undefined;
  #writing: Promise<void> = Promise.resolve();
  #dirty = false;

  constructor(parts: LeaseFileParts, book: LeaseBook, nowMs: () => number) {
    this.#parts = parts;
    this.#book = book;
    this.#nowMs = nowMs;
  }

  /** The book differs from the file. Returns at once. */
  changed(): void {
    this.#dirty = true;
    if (this.#timer === undefined) this.#writeAfter(0);
  }

  /** Writes pending changes. */
  async close(): Promise<void> {
    this.#timer?.();
    this.#timer = undefined;
    await this.#writing;
    if (this.#dirty) await this.#write();
  }

  #writeAfter(delayMs: number): void {
    this.#timer = this.#parts.clock.after(delayMs, () => {
      this.#writing = this.#write().then((written) => {
        // Gone when the file was closed meanwhile.
        if (this.#timer !== undefined) this.#rest(written);
      });
    });
  }

  /** Changes during the last write are written after a pause. */
  #rest(written: boolean): void {
    this.#timer = this.#parts.clock.after(written ? writeSpacingMs : retryMs, () => {
      this.#timer = undefined;
      if (this.#dirty) this.#writeAfter(0);
    });
  }

  /** Resolves with whether it is on disk. */
  async #write(): Promise<boolean> {
    const { disk, log, path } = this.#parts;
    const nowMs = this.#nowMs();
    this.#dirty = false;
    try {
      const text = formatLeases(this.#book.records(nowMs), nowMs);
      await disk.writeAtomic(path, new TextEncoder().encode(text), ownerOnlyMode);
      return true;
    } catch (error) {
      this.#dirty = true;
      log.error({ path }, 'leases are in force but not on disk', error);
      return false;
    }
  }
}

export function formatLeases({ leases, setAside }: LeaseRecords, writtenAtMs: number): string {
  const lines = {
    version: formatVersion,
    writtenAtMs,
    leases: leases.map(({ mac, address, bound, untilMs }) => {
      return { mac, address, state: bound ? 'bound' : 'free', untilMs };
    }),
    setAside,
  };
  return `${JSON.stringify(lines, null, 1)}\n`;
}

/** Throws a ConfigError that says what is wrong, or a SyntaxError. */
export function parseLeases(text: string): WrittenLeases {
  const reader = new ConfigReader(JSON.parse(text));
  reader.whole('version', [formatVersion, formatVersion]);
  const writtenAtMs = readTime(reader, 'writtenAtMs');
  const leases = reader.sections('leases', (one): Lease => {
    const bound = one.oneOf('state', ['bound', 'free']) === 'bound';
    return { ...readOwner(one), bound, untilMs: readTime(one, 'untilMs') };
  });
  const setAside = reader.sections('setAside', (one): SetAside => {
    return { ...readOwner(one), untilMs: readTime(one, 'untilMs') };
  });
  reader.end();
  return { records: { leases, setAside }, writtenAtMs };
}

function readOwner(reader: ConfigReader): { readonly mac: Mac; readonly address: string } {
  const isMac = (text: string) => canonicalMac(text) !== undefined;
  const isAddress = (text: string) => addressNumber(text) !== undefined;
  return {
    mac: asMac(reader.textThat('mac', isMac, 'a MAC')),
    address: reader.textThat('address', isAddress, 'an IPv4 address'),
  };
}

function readTime(reader: ConfigReader, key: string): number {
  return reader.whole(key, [0, Number.MAX_SAFE_INTEGER]);
}
