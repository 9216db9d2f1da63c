/**
 * A folder of raw files as the disks of a machine, for simulated machines. Each disk logs its
 * operations in `<name>.log`: a judge that reads it needs nothing else of ours.
 *
 * Invariants:
 * L1 Every act is in the log before it is done (`begin`) and after (`end`), appended by system
 *    calls that have returned: a kill between them leaves a `begin` without its `end`.
 * L2 Log lines are JSON objects: time (ms), phase, kind (open, write, zero, discard, format,
 *    flush), region, offset, length, sha256 of the written bytes, outcome (ok, EIO, lied). A hidden
 *    fault of a disk is in no log.
 * L3 An image that is removed or replaced is a disk that is pulled or swapped: an open region stays
 *    the old file.
 */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  type DeviceFacts,
  deviceIdentity,
  leavesContent,
  type Region,
  type SelfErasure,
  type StorageSign,
} from '@rackwright/erasure';
import { type Clock, isAbsent } from '@rackwright/platform';
import {
  type BlockDevices,
  type DeviceAccess,
  DeviceError,
  type HeldDevice,
  type NvmeEraseMode,
  type OpenRegion,
  type OwnWork,
  streamBytesMax,
} from '../machine/block-devices.ts';
import {
  describeFileDisk,
  type FaultyOperation,
  type FileDiskDescription,
} from './file-disk-description.ts';
import type { Lie } from './file-disk-lies.ts';
import { type ContentAt, type DiskCounts, Medium, noCounts, zeros } from './file-disk-medium.ts';
import { isMissing } from './sys-files.ts';

/** Lines of a disk's log that go into evidence. */
const logLinesShown = 16;
/** Noise is repeated after so many. */
const noiseBytes = 65_536;

type ActKind = 'open' | 'write' | 'zero' | 'discard' | 'format' | 'flush';

interface Act {
  readonly kind: ActKind;
  readonly region: string;
  readonly offset: number;
  readonly length: number;
  readonly sha256?: string;
}

/**
 * Counts of the disks' operations so far, by name; a caller that keeps it lets faults span several
 * boots.
 */
export type DiskMemory = Map<string, DiskCounts>;

/** Opens a folder; descriptions are read anew by every `list`. */
export function fileDisks(
  folder: string,
  clock: Clock,
  memory: DiskMemory = new Map(),
): BlockDevices {
  const open = new Set<string>();
  const box: Box = { folder, clock, open, countsOf: (name) => countsOf(memory, name) };
  return {
    list: async () => ({ devices: listFolder(box), signs: readSigns(folder) }),
    hold: async (device, access = 'write') => {
      const disk = new FileDisk(box, device);
      disk.open(access);
      return disk;
    },
    dismantle: async ({ name, holders }) => {
      throw new DeviceError(`${name} is in use by ${holders.join(', ')}`);
    },
    unhide: async (device) => exposeAll(box, device.name),
  };
}

/** Content behind a host protected area of a file disk is exposed from now on. */
function exposeAll({ folder }: Box, name: string): string[] {
  const path = join(folder, `${name}.json`);
  const object = JSON.parse(readFileSync(path, 'utf8')) as {
    regions?: { exposedBytes?: number }[];
  };
  for (const region of object.regions ?? []) delete region.exposedBytes;
  writeFileSync(path, JSON.stringify(object));
  return [`${name}: host protected area removed`];
}

interface Box {
  readonly folder: string;
  readonly clock: Clock;
  /** Names of all regions that are held. */
  readonly open: Set<string>;
  countsOf(name: string): DiskCounts;
}

function countsOf(memory: DiskMemory, name: string): DiskCounts {
  const counts = memory.get(name) ?? noCounts();
  memory.set(name, counts);
  return counts;
}

function listFolder(box: Box): DeviceFacts[] {
  return namesIn(box.folder).flatMap((name) => {
    const { facts, lies } = describe(box, name);
    const listing = box.countsOf(name).listings++;
    return lies.some((lie) => isUnlisted(lie, listing)) ? [] : [facts];
  });
}

/** Other signs of storage, as JSON, in the file `signs`; it may be absent. */
function readSigns(folder: string): StorageSign[] {
  const path = join(folder, 'signs');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as StorageSign[]) : [];
}

function isUnlisted(lie: Lie, listing: number): boolean {
  if (lie.kind !== 'unlisted') return false;
  return listing >= lie.afterListings && listing < lie.afterListings + lie.listings;
}

function namesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

function describe({ folder, countsOf }: Box, name: string): FileDiskDescription {
  const text = readFileSync(join(folder, `${name}.json`), 'utf8');
  const described = describeFileDisk(name, text, (region) => {
    return statSync(join(folder, `${region}.img`)).size;
  });
  const counts = countsOf(name);
  const read = counts.openings++;
  let { facts } = described;
  for (const lie of described.lies) {
    if (lie.kind !== 'says' || read < lie.afterReads) continue;
    const past = counts.operations - lie.afterOperations;
    if (past >= 0 && past < lie.operations) facts = { ...facts, [lie.field]: lie.text };
  }
  return { ...described, facts };
}

class FileDisk implements HeldDevice {
  readonly #box: Box;
  readonly #facts: DeviceFacts;
  readonly #regions: { readonly region: Region; readonly fd: number; readonly medium: Medium }[] =
    [];
  #description: FileDiskDescription;
  /** The faults of the disk that was opened, also when another disk has replaced it since. */
  readonly #lies: readonly Lie[];
  readonly #counts: DiskCounts;
  #pulled = false;

  constructor(box: Box, facts: DeviceFacts) {
    this.#box = box;
    this.#facts = facts;
    this.#counts = box.countsOf(facts.name);
    this.#description = this.#describe();
    this.#lies = this.#description.lies;
  }

  open(access: DeviceAccess): void {
    try {
      for (const region of this.#facts.regions) this.#openRegion(region, access);
      this.#mustBeSame();
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  get regions(): OpenRegion[] {
    return this.#regions.map(({ region, medium }) => this.#operations(region, medium));
  }

  async confirm(): Promise<void> {
    this.#mustBeSame();
  }

  async checkAttached(): Promise<void> {
    this.#mustBeSame();
  }

  async ownWork(): Promise<OwnWork | undefined> {
    const text = this.#description.busyWith;
    return text === '' ? undefined : { kind: 'running', text };
  }

  async close(): Promise<void> {
    this.#close();
  }

  /** Zeros for a user data erase, noise for a cryptographic one. */
  async nvmeFormat(mode: NvmeEraseMode): Promise<string[]> {
    await this.#fillAll(mode === 'crypto');
    return [`formatted ${this.#regions.length} namespace(s)`];
  }

  async eraseItself(method: SelfErasure): Promise<string[]> {
    await this.#fillAll(leavesContent(method));
    return [`erased itself: ${method}`];
  }

  async #fillAll(withNoise: boolean): Promise<void> {
    for (const { region, medium } of this.#regions) {
      const length = region.sizeBytes;
      await this.#operate('format');
      const act = { kind: 'format' as const, region: region.name, offset: 0, length };
      this.#logged(act, 'format', () => {
        medium.change('format', 0, length, withNoise ? noiseFor(region.name) : zeros);
      });
    }
  }

  async readLog(): Promise<string[]> {
    try {
      const lines = readFileSync(this.#logPath(), 'utf8').trimEnd().split('\n');
      return lines.slice(-logLinesShown);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  #openRegion(region: Region, access: DeviceAccess): void {
    const { open, clock } = this.#box;
    if (open.has(region.name)) throw new DeviceError(`${region.name} is in use`);
    const act = { kind: 'open' as const, region: region.name, offset: 0, length: 0 };
    const mode = access === 'write' ? 'r+' : 'r';
    const fd = this.#logged(act, undefined, () => openSync(this.#image(region.name), mode));
    if (fd === undefined) throw new DeviceError(`${region.name} cannot be opened`);
    open.add(region.name);
    const parts = { fd, image: this.#image(region.name), clock };
    const medium = new Medium({ ...parts, lies: this.#lies, counts: this.#counts });
    this.#regions.push({ region, fd, medium });
  }

  #close(): void {
    for (const { region, fd } of this.#regions.splice(0)) {
      closeSync(fd);
      this.#box.open.delete(region.name);
    }
  }

  #describe(): FileDiskDescription {
    try {
      return describe(this.#box, this.#facts.name);
    } catch (cause) {
      if (!isAbsent(cause)) throw cause;
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

  #operations(region: Region, medium: Medium): OpenRegion {
    const name = region.name;
    const write = async (kind: 'write' | 'zero', offset: number, bytes: Uint8Array) => {
      checkRange(region, offset, bytes.length);
      await this.#operate('write');
      const act = { kind, region: name, offset, length: bytes.length, sha256: sha256(bytes) };
      const content: ContentAt = (at, length) => bytes.subarray(at - offset, at - offset + length);
      this.#logged(act, 'write', () => medium.change('write', offset, bytes.length, content));
    };
    const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
      checkRange(region, offset, target.length);
      await this.#operate('read');
      this.#failIfFaulty('read', offset, target.length);
      const length = medium.read(offset, target);
      if (length === target.length) return;
      throw new DeviceError(`${name}: ${length} bytes instead of ${target.length} at ${offset}`);
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
        await this.#operate('discard');
        const act = { kind: 'discard' as const, region: name, offset, length };
        // The rest that fills no unit stays as it is, and the disk does not report that.
        const { discardGranularityBytes: unit = 1 } = region;
        const reached = Math.floor((offset + length) / unit) * unit - offset;
        this.#logged(act, 'discard', () => medium.change('discard', offset, reached, zeros));
        return [`discarded ${length} bytes from ${offset}`];
      },
      flush: async () => {
        const act = { kind: 'flush' as const, region: name, offset: 0, length: 0 };
        this.#logged(act, undefined, () => medium.flush());
      },
    };
  }

  /** Waits its delay, and may be pulled before it performs the operation. */
  async #operate(operation: FaultyOperation): Promise<void> {
    await this.#slow(operation);
    const count = this.#counts.operations++;
    for (const lie of this.#lies) {
      if (lie.kind === 'pulled' && !this.#pulled && count >= lie.afterOperations) {
        this.#pulled = true;
        const { name, regions } = this.#facts;
        const names = regions.map((region) => region.name);
        this.#swap(name, names, lie.replacedBy);
      }
      if (lie.kind === 'swaps' && count === lie.afterOperations) {
        this.#swap(lie.disk, [lie.disk], lie.replacedBy);
      }
      if (lie.kind === 'brings' && count === lie.afterOperations) this.#plugIn(lie.disk);
    }
    if (!this.#pulled) return;
    throw new DeviceError(`${this.#facts.name}: I/O error: no such device`);
  }

  /** A disk's files step aside, and those of a spare may take their names. */
  #swap(name: string, regions: readonly string[], replacedBy: string): void {
    for (const file of [`${name}.json`, ...regions.map((region) => `${region}.img`)]) {
      renameSync(this.#path(file), this.#path(`${file}.pulled`));
    }
    if (replacedBy === '') return;
    renameSync(this.#path(`${replacedBy}.spare`), this.#path(`${name}.json`));
    renameSync(this.#path(`${replacedBy}.spareimg`), this.#image(regions[0] ?? name));
  }

  /** A spare becomes a disk of its own. */
  #plugIn(spare: string): void {
    renameSync(this.#path(`${spare}.spareimg`), this.#image(spare));
    renameSync(this.#path(`${spare}.spare`), this.#path(`${spare}.json`));
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
      const text = `I/O error: ${operation} of ${length} bytes at ${offset}`;
      const kind = operation === 'read' || operation === 'write' ? operation : 'tool';
      throw new DeviceError(`${this.#facts.name}: ${text}`, { operation: kind });
    }
  }

  async #slow(operation: FaultyOperation): Promise<void> {
    for (const fault of this.#description.faults) {
      if (fault.kind !== 'slow' || fault.operation !== operation) continue;
      await new Promise<void>((resolve) => {
        this.#box.clock.after(fault.delayMs, resolve);
      });
    }
  }

  #log(phase: 'begin' | 'end', act: Act, outcome: string | undefined): void {
    const line = JSON.stringify({ time: this.#box.clock.nowMs(), phase, ...act, outcome });
    appendFileSync(this.#logPath(), `${line}\n`);
  }

  #logPath(): string {
    return this.#path(`${this.#facts.name}.log`);
  }

  #image(region: string): string {
    return this.#path(`${region}.img`);
  }

  #path(file: string): string {
    return join(this.#box.folder, file);
  }
}

function checkRange(region: Region, offset: number, length: number): void {
  const block = region.logicalBlockBytes;
  if (length > streamBytesMax || offset % block !== 0 || length % block !== 0) {
    throw new DeviceError(`${region.name}: ${length} bytes at ${offset} are not block-aligned`);
  }
  if (offset + length > region.sizeBytes) {
    throw new DeviceError(`${region.name}: ${length} bytes at ${offset} lie beyond its end`);
  }
}

/** The old content as read under a new key: bytes that mean nothing. */
function noiseFor(region: string): ContentAt {
  const noise = Buffer.alloc(noiseBytes);
  for (let at = 0; at < noiseBytes; at += 32) {
    noise.set(createHash('sha256').update(`noise ${region} ${at}`).digest(), at);
  }
  return (_at, length) => Buffer.alloc(length, noise);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
