/**
 * A folder of raw files as the disks of a machine, for machines made of software. What each disk
 * saw is in its own log, `<name>.log`: a judge that reads it needs nothing else of ours.
 *
 * Invariants:
 * L1 Every act is in the log before it is done (`begin`) and after (`end`), appended by system
 *    calls that have returned: a kill between them leaves a `begin` without its `end`.
 * L2 Log lines are JSON objects: time (ms), phase, kind (open, write, zero, discard, format,
 *    flush), region, offset, length, sha256 of what was written, outcome (ok, EIO, lied).
 * L3 An image that is removed or replaced is a disk that is pulled or swapped: what was opened
 *    stays the old file.
 */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type DeviceFacts, deviceIdentity, type Region } from '@rackwright/erasure';
import type { Clock } from '@rackwright/platform';
import {
  type BlockDevices,
  DeviceError,
  type DeviceListing,
  type HeldDevice,
  type NvmeEraseMode,
  type OpenRegion,
  transferBytesMax,
} from '../block-devices.ts';
import {
  describeFileDisk,
  type FaultyOperation,
  type FileDiskDescription,
} from './file-disk-description.ts';

/** Lines of a disk's log that go into evidence. */
const logLinesShown = 16;

type ActKind = 'open' | 'write' | 'zero' | 'discard' | 'format' | 'flush';

interface Act {
  readonly kind: ActKind;
  readonly region: string;
  readonly offset: number;
  readonly length: number;
  readonly sha256?: string;
}

/** Opens a folder; descriptions are read anew by every `list`. */
export function fileDisks(folder: string, clock: Clock): BlockDevices {
  const open = new Set<string>();
  return {
    list: async () => listFolder(folder),
    hold: async (device) => {
      const disk = new FileDisk(folder, device, clock, open);
      disk.open();
      return disk;
    },
  };
}

function listFolder(folder: string): DeviceListing {
  const devices: DeviceFacts[] = namesIn(folder).map((name) => describe(folder, name).facts);
  return { devices, signs: [] };
}

function namesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

function describe(folder: string, name: string): FileDiskDescription {
  const text = readFileSync(join(folder, `${name}.json`), 'utf8');
  return describeFileDisk(name, text, (region) => statSync(join(folder, `${region}.img`)).size);
}

class FileDisk implements HeldDevice {
  readonly #folder: string;
  readonly #facts: DeviceFacts;
  readonly #clock: Clock;
  /** Names of all regions that anybody holds. */
  readonly #open: Set<string>;
  readonly #regions: { readonly region: Region; readonly fd: number }[] = [];
  #description: FileDiskDescription;

  constructor(folder: string, facts: DeviceFacts, clock: Clock, open: Set<string>) {
    this.#folder = folder;
    this.#facts = facts;
    this.#clock = clock;
    this.#open = open;
    this.#description = this.#describe();
  }

  open(): void {
    try {
      for (const region of this.#facts.regions) this.#openRegion(region);
      this.#mustBeSame();
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  get regions(): OpenRegion[] {
    return this.#regions.map(({ region, fd }) => this.#operations(region, fd));
  }

  async confirm(): Promise<void> {
    this.#mustBeSame();
  }

  async present(): Promise<void> {
    this.#mustBeSame();
  }

  async busyWith(): Promise<string | undefined> {
    return this.#description.busyWith || undefined;
  }

  async close(): Promise<void> {
    this.#close();
  }

  /** Zeros for a user data erase, noise for a cryptographic one. */
  async nvmeFormat(mode: NvmeEraseMode): Promise<string[]> {
    for (const { region, fd } of this.#regions) {
      const length = region.sizeBytes;
      await this.#slow('format');
      const act = { kind: 'format' as const, region: region.name, offset: 0, length };
      this.#logged(act, 'format', () => {
        fill(fd, 0, length, mode === 'crypto' ? noiseFor(region.name) : undefined);
      });
    }
    return [`formatted ${this.#regions.length} namespace(s)`];
  }

  async readLog(): Promise<string[]> {
    try {
      const lines = readFileSync(this.#logPath(), 'utf8').trimEnd().split('\n');
      return lines.slice(-logLinesShown);
    } catch {
      return [];
    }
  }

  #openRegion(region: Region): void {
    if (this.#open.has(region.name)) throw new DeviceError(`${region.name} is in use`);
    const act = { kind: 'open' as const, region: region.name, offset: 0, length: 0 };
    const fd = this.#logged(act, undefined, () => openSync(this.#image(region.name), 'r+'));
    if (fd === undefined) throw new DeviceError(`${region.name} cannot be opened`);
    this.#open.add(region.name);
    this.#regions.push({ region, fd });
  }

  #close(): void {
    for (const { region, fd } of this.#regions.splice(0)) {
      closeSync(fd);
      this.#open.delete(region.name);
    }
  }

  #describe(): FileDiskDescription {
    try {
      return describe(this.#folder, this.#facts.name);
    } catch (cause) {
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause;
      throw new DeviceError(`${this.#facts.name} is not there any more`, {
        cause,
        loss: 'vanished',
      });
    }
  }

  /** The description is read anew, with its faults; each image must be the one that is open. */
  #mustBeSame(): void {
    this.#description = this.#describe();
    const found = this.#description.facts;
    const { name, serial, wwn, sizeBytes } = this.#facts;
    const isSame = found.serial === serial && found.wwn === wwn && found.sizeBytes === sizeBytes;
    const isOpen = this.#regions.every(
      ({ region, fd }) => statSync(this.#image(region.name)).ino === fstatSync(fd).ino,
    );
    if (isSame && isOpen) return;
    throw new DeviceError(`${name} is another device: ${deviceIdentity(found)}`, {
      loss: 'changed',
    });
  }

  #operations(region: Region, fd: number): OpenRegion {
    const name = region.name;
    const write = async (kind: 'write' | 'zero', offset: number, bytes: Uint8Array) => {
      checkRange(region, offset, bytes.length);
      await this.#slow('write');
      const act = { kind, region: name, offset, length: bytes.length, sha256: sha256(bytes) };
      this.#logged(act, 'write', () => writeSync(fd, bytes, 0, bytes.length, offset));
    };
    const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
      checkRange(region, offset, target.length);
      await this.#slow('read');
      this.#failIfFaulty('read', offset, target.length);
      readSync(fd, target, 0, target.length, offset);
    };
    return {
      read: async (offset, length) => {
        const bytes = new Uint8Array(length);
        await readInto(offset, bytes);
        return bytes;
      },
      readInto,
      write: (offset, bytes) => write('write', offset, bytes),
      writeZeros: (offset, length) => write('zero', offset, new Uint8Array(length)),
      discard: async (offset, length) => {
        await this.#slow('discard');
        const act = { kind: 'discard' as const, region: name, offset, length };
        // What does not fill a unit stays as it is, and the disk says nothing about it.
        const { discardGranularityBytes: unit = 1 } = region;
        const reached = Math.floor((offset + length) / unit) * unit - offset;
        this.#logged(act, 'discard', () => fill(fd, offset, reached, undefined));
        return [`discarded ${length} bytes from ${offset}`];
      },
      flush: async () => {
        const act = { kind: 'flush' as const, region: name, offset: 0, length: 0 };
        this.#logged(act, undefined, () => fstatSync(fd));
      },
    };
  }

  /** Logs, meets the disk's faults, does, logs (L1). Undefined when the disk lied. */
  #logged<T>(act: Act, operation: FaultyOperation | undefined, perform: () => T): T | undefined {
    this.#log('begin', act, undefined);
    let outcome = 'EIO';
    try {
      if (operation !== undefined) this.#failIfFaulty(operation, act.offset, act.length);
      const { faults } = this.#description;
      const lies = faults.some((each) => each.kind === 'lying' && each.operation === operation);
      const result = lies ? undefined : perform();
      outcome = lies ? 'lied' : 'ok';
      return result;
    } finally {
      this.#log('end', act, outcome);
    }
  }

  #failIfFaulty(operation: FaultyOperation, offset: number, length: number): void {
    for (const fault of this.#description.faults) {
      if (fault.kind !== 'ioError' || fault.operation !== operation) continue;
      if (offset + length <= fault.offset || offset >= fault.offset + fault.length) continue;
      throw new DeviceError(
        `${this.#facts.name}: I/O error: ${operation} of ${length} bytes at ${offset}`,
      );
    }
  }

  async #slow(operation: FaultyOperation): Promise<void> {
    for (const fault of this.#description.faults) {
      if (fault.kind !== 'slow' || fault.operation !== operation) continue;
      await new Promise<void>((resolve) => {
        this.#clock.after(fault.delayMs, resolve);
      });
    }
  }

  #log(phase: 'begin' | 'end', act: Act, outcome: string | undefined): void {
    const line = JSON.stringify({ time: this.#clock.nowMs(), phase, ...act, outcome });
    appendFileSync(this.#logPath(), `${line}\n`);
  }

  #logPath(): string {
    return join(this.#folder, `${this.#facts.name}.log`);
  }

  #image(region: string): string {
    return join(this.#folder, `${region}.img`);
  }
}

function checkRange(region: Region, offset: number, length: number): void {
  const block = region.logicalBlockBytes;
  if (length > transferBytesMax || offset % block !== 0 || length % block !== 0) {
    throw new DeviceError(`${region.name}: ${length} bytes at ${offset} are not block-aligned`);
  }
  if (offset + length > region.sizeBytes) {
    throw new DeviceError(`${region.name}: ${length} bytes at ${offset} lie beyond its end`);
  }
}

function fill(fd: number, offset: number, length: number, content: Uint8Array | undefined): void {
  const chunk = content ?? new Uint8Array(transferBytesMax);
  for (let at = 0; at < length; at += chunk.length) {
    writeSync(fd, chunk, 0, Math.min(chunk.length, length - at), offset + at);
  }
}

/** What the old content looks like under a new key: bytes that mean nothing. */
function noiseFor(region: string): Uint8Array {
  const noise = new Uint8Array(transferBytesMax);
  for (let at = 0; at < noise.length; at += 32) {
    noise.set(createHash('sha256').update(`noise ${region} ${at}`).digest(), at);
  }
  return noise;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
