/**
 * The simulated disks of a machine. Each keeps a log of its own, which the judge reads: it knows
 * nothing of who gave the orders, nor of operations.
 */
import type { DeviceFacts } from '@rackwright/erasure';
import {
  type BlockDevices,
  DeviceError,
  type HeldDevice,
  type OpenRegion,
} from '@rackwright/runner';
import type { EventHeap, SimProcess } from '@rackwright/sim';
import type { Chance } from './chance.ts';

/** Four blocks of 4 KiB: enough for each kind of challenge, and cheap to read back. */
const driveBytes = 16_384;
const blockBytes = 4_096;

/** What one device did, as it saw it. */
export interface DriveEvent {
  readonly atMs: number;
  readonly machine: string;
  readonly serial: string;
  readonly act: Written | 'settled' | 'osWrote' | 'powerLost' | 'restarted' | 'returned' | ReadBack;
}

/** Ordered writes; `challenge`: data that is not all zeros. */
export type Written = 'challenge' | 'zeros' | 'format';

/**
 * Of a device that was opened for reading only; `read`: old data, or all of it without any.
 * `settled`: the device ended a format by itself. `returned`: content from before a wipe is back.
 */
export type ReadBack = 'openedToRead' | 'readOld' | 'readClean';

const writes: ReadonlySet<DriveEvent['act']> = new Set<Written>(['challenge', 'zeros', 'format']);

/** Whether somebody ordered the device to change its content. */
export function isWrite({ act }: DriveEvent): boolean {
  return writes.has(act);
}

/**
 * What becomes of a wipe: it lasts; it stays in a cache that a loss of power empties; or the device
 * returns zeros for a time, and then what it had before.
 */
export type WipeFault = 'none' | 'lostAtPowerOff' | 'showsLate';

/** For how long a device that shows late returns zeros, milliseconds. */
const showsLateMs = 9_000;

/** An image on a disk, as far as it was written. */
export interface DiskImage {
  readonly digest: string;
  readonly whole: boolean;
  /** Which deployment wrote it. */
  readonly deployment: string;
  /** Where it says that it runs; empty: nowhere. */
  readonly phoneHome: string;
}

export interface DriveTraits {
  readonly serial: string;
  readonly kind: 'sata' | 'nvme';
  /** Says that it wrote or formatted, and did not. */
  lies: boolean;
  /** Keeps what it had, and returns what was written since: no reading of it finds that. */
  hides: boolean;
  /** Every write fails until this time. */
  failsUntilMs: number;
  wipe: WipeFault;
}

/** A disk that does what it is told. */
export function soundDrive(serial: string, kind: DriveTraits['kind']): DriveTraits {
  return { serial, kind, lies: false, hides: false, failsUntilMs: 0, wipe: 'none' };
}

/** What a device really holds while it shows something else. */
interface Medium {
  readonly bytes: Uint8Array;
  readonly old: ReadonlySet<number>;
  readonly image: DiskImage | undefined;
}

export class SimDrive {
  readonly traits: DriveTraits;
  readonly #bytes = new Uint8Array(driveBytes);
  /** Blocks that still hold what was there before an erasure. */
  readonly #old = new Set<number>();
  #image: DiskImage | undefined;
  #openFor: SimProcess | undefined;
  #formattingUntilMs = -1;
  #format = 0;
  #medium: Medium | undefined;
  #changes = 0;
  #returned = false;

  constructor(traits: DriveTraits, hasData: boolean) {
    this.traits = traits;
    if (hasData) this.fill();
  }

  get serial(): string {
    return this.traits.serial;
  }

  /** Whether old data can still be read. */
  get hasData(): boolean {
    return this.#old.size > 0;
  }

  /** Whether this block holds old data. */
  isOld(block: number): boolean {
    return this.#old.has(block);
  }

  /** Whether that data was wiped, and nothing has been written since it came back. */
  get hasReturned(): boolean {
    return this.#returned;
  }

  /** What was written onto it last; undefined when something else was written since. */
  get image(): DiskImage | undefined {
    return this.#image;
  }

  /** Bytes of an image are there now: a part of it, or all. */
  takeImage(image: DiskImage): void {
    this.fill();
    this.#image = image;
  }

  /** Somebody uses it: data is there again. */
  fill(): void {
    this.#bytes.fill(0xa5);
    this.#medium = undefined;
    this.#returned = false;
    for (let block = 0; block * blockBytes < driveBytes; block++) this.#old.add(block);
  }

  /** The system on it runs, and writes. What came back with it is no less come back. */
  bootSystem(): void {
    const hasReturned = this.#returned;
    this.fill();
    this.#returned = hasReturned;
  }

  /** The machine starts anew: a format that was under way has reached nobody knows what. */
  restarted(nowMs: number): void {
    this.#openFor = undefined;
    if (nowMs < this.#formattingUntilMs) this.#format += 1;
    this.#formattingUntilMs = -1;
  }

  /** The same without power: whether content from before a wipe is back. */
  powerLost(nowMs: number): boolean {
    this.restarted(nowMs);
    return this.traits.wipe === 'lostAtPowerOff' && this.#showMedium();
  }

  /** From now on a wipe lasts, also the last one. */
  mend(): void {
    this.traits.failsUntilMs = 0;
    this.traits.wipe = 'none';
    this.#medium = undefined;
  }

  /** What stands on the medium is seen again; whether it is of before a wipe that was complete. */
  #showMedium(): boolean {
    const medium = this.#medium;
    if (medium === undefined) return false;
    this.#returned = this.#old.size === 0 && medium.old.size > 0;
    this.#bytes.set(medium.bytes);
    this.#old.clear();
    for (const block of medium.old) this.#old.add(block);
    this.#image = medium.image;
    this.#medium = undefined;
    return this.#returned;
  }

  /** Before the content changes by order: what the medium keeps, if it keeps something else. */
  #keepMedium(): void {
    this.#returned = false;
    if (this.traits.wipe === 'none') this.#medium = undefined;
    else
      this.#medium ??= { bytes: this.#bytes.slice(), old: new Set(this.#old), image: this.#image };
  }

  /** After each change: a device that shows late begins to count anew. */
  changed(heap: EventHeap, returned: () => void): void {
    const medium = this.#medium;
    if (this.traits.wipe !== 'showsLate' || medium === undefined) return;
    this.#changes += 1;
    const changes = this.#changes;
    heap.after(showsLateMs, () => {
      const isLast = changes === this.#changes && medium === this.#medium;
      if (isLast && this.traits.wipe === 'showsLate' && this.#showMedium()) returned();
    });
  }

  facts(name: string): DeviceFacts {
    const nvme = this.traits.kind === 'nvme';
    return {
      name,
      transport: nvme ? 'nvme' : 'sata',
      model: 'simulated',
      serial: this.serial,
      wwn: '',
      firmware: '1',
      sizeBytes: driveBytes,
      rotational: !nvme,
      removable: false,
      readOnly: false,
      discardSupported: false,
      raidVolume: false,
      holders: [],
      regions: [{ name, sizeBytes: driveBytes, logicalBlockBytes: 512 }],
      partitions: [],
      ...(nvme ? { nvme: nvmeFacts } : {}),
    };
  }

  open(user: SimProcess): void {
    if (this.#openFor?.alive === true) throw new DeviceError('in use');
    this.#openFor = user;
  }

  close(): void {
    this.#openFor = undefined;
  }

  read(offset: number, length: number): Uint8Array {
    return this.#bytes.slice(offset, offset + length);
  }

  write(offset: number, bytes: Uint8Array): void {
    if (this.traits.lies) return;
    this.#keepMedium();
    this.#image = undefined;
    this.#bytes.set(bytes, offset);
    if (this.traits.hides) return;
    for (let at = offset; at < offset + bytes.length; at += blockBytes) {
      this.#old.delete(Math.floor(at / blockBytes));
    }
  }

  busyMs(nowMs: number): number {
    return Math.max(0, this.#formattingUntilMs - nowMs);
  }

  /** Goes on inside the device, whatever becomes of who asked for it. */
  beginFormat(heap: EventHeap, tookMs: number, settled: () => void): void {
    this.#format += 1;
    const format = this.#format;
    this.#formattingUntilMs = heap.nowMs + tookMs;
    heap.after(tookMs, () => {
      if (format !== this.#format) return;
      this.#formattingUntilMs = -1;
      if (!this.traits.lies) {
        this.#keepMedium();
        this.#image = undefined;
        this.#bytes.fill(0);
        if (!this.traits.hides) this.#old.clear();
      }
      settled();
    });
  }
}

const nvmeFacts = Object.freeze({
  formatSupported: true,
  cryptoEraseSupported: false,
  formatsAllNamespaces: true,
});

export interface DriveSurroundings {
  readonly heap: EventHeap;
  readonly chance: Chance;
  readonly process: SimProcess;
  readonly machine: string;
  readonly drives: () => readonly SimDrive[];
  readonly log: (event: DriveEvent) => void;
  /** The disks have been looked at. */
  readonly listed: () => void;
}

/** The disks as one life of the runner reaches them. */
export function blockDevices(around: DriveSurroundings): BlockDevices {
  const { process, drives } = around;
  const nameOf = (drive: SimDrive) => `disk${drives().indexOf(drive)}`;
  const driveOf = ({ serial }: DeviceFacts): SimDrive => {
    const drive = drives().find((each) => each.serial === serial);
    if (drive === undefined) throw new DeviceError(`${serial} is gone`);
    return drive;
  };
  return {
    list: async () => {
      around.listed();
      return { devices: drives().map((each) => each.facts(nameOf(each))), signs: [] };
    },
    hold: async (device, access = 'write') => {
      const drive = driveOf(device);
      drive.open(process);
      if (access === 'write') return holdDrive(around, drive, device, openRegion(around, drive));
      note(around, drive, 'openedToRead');
      return holdDrive(around, drive, device, readOnly(around, drive, openRegion(around, drive)));
    },
    dismantle: async ({ name }) => {
      throw new DeviceError(`${name} has no holders that could be taken down`);
    },
    unhide: async ({ name }) => {
      throw new DeviceError(`${name} hides nothing`);
    },
  };
}

function holdDrive(
  around: DriveSurroundings,
  drive: SimDrive,
  device: DeviceFacts,
  region: OpenRegion,
): HeldDevice {
  const { heap, chance, process, drives } = around;
  const present = async (): Promise<void> => {
    if (drives().includes(drive)) return;
    throw new DeviceError(`${device.name} is gone`, { loss: 'vanished' });
  };
  return {
    regions: device.regions.map(() => region),
    checkAttached: present,
    confirm: present,
    nvmeFormat: async () => {
      const tookMs = chance.around(8_000);
      note(around, drive, 'format');
      failIfBroken(around, drive);
      drive.beginFormat(heap, tookMs, () => {
        note(around, drive, 'settled');
        changed(around, drive);
      });
      return process.answer(tookMs + 1, () => ['formatted']);
    },
    eraseItself: async (method) => {
      throw new DeviceError(`${device.name}: invalid opcode for ${method}`);
    },
    ownWork: async () =>
      drive.busyMs(heap.nowMs) > 0 ? { kind: 'running', text: 'a format is under way' } : undefined,
    readLog: async () => [],
    close: async () => drive.close(),
  };
}

function openRegion(around: DriveSurroundings, drive: SimDrive): OpenRegion {
  const { process, chance } = around;
  let challenged = false;
  return {
    read: async (offset, length) => {
      if (chance.happens(0.001)) throw new DeviceError('I/O error: read', { operation: 'read' });
      return drive.read(offset, length);
    },
    readInto: async (offset, target) => {
      if (chance.happens(0.001)) throw new DeviceError('I/O error: read', { operation: 'read' });
      target.set(drive.read(offset, target.length));
    },
    write: async (offset, bytes) => {
      if (!challenged) note(around, drive, 'challenge');
      challenged = true;
      await process.answer(chance.around(50), () => undefined);
      failIfBroken(around, drive);
      drive.write(offset, bytes);
      changed(around, drive);
    },
    writeZeros: async (offset, length) => {
      note(around, drive, 'zeros');
      // In pieces, so that a kill leaves a half.
      const pieces = length / blockBytes;
      for (let piece = 0; piece < pieces; piece++) {
        await process.answer(chance.around(3_000), () => undefined);
        failIfBroken(around, drive);
        drive.write(offset + piece * blockBytes, new Uint8Array(blockBytes));
        changed(around, drive);
      }
    },
    discard: async () => {
      throw new DeviceError('no discard here');
    },
    flush: () => process.answer(chance.around(20), () => undefined),
  };
}

/** The device itself refuses writes, and notes what was read from it. */
function readOnly(around: DriveSurroundings, drive: SimDrive, inner: OpenRegion): OpenRegion {
  const blocksRead = new Set<number>();
  const refuse = async (): Promise<never> => {
    throw new DeviceError(`${drive.serial} is open for reading only`, { operation: 'write' });
  };
  const took = (offset: number, length: number) => {
    let foundOld = false;
    for (let at = offset; at < offset + length; at += blockBytes) {
      const block = Math.floor(at / blockBytes);
      foundOld ||= drive.isOld(block);
      blocksRead.add(block);
    }
    if (foundOld) note(around, drive, 'readOld');
    const isWhole = blocksRead.size === driveBytes / blockBytes;
    if (isWhole && !drive.hasData) note(around, drive, 'readClean');
  };
  return {
    read: async (offset, length) => {
      const bytes = await inner.read(offset, length);
      took(offset, length);
      return bytes;
    },
    readInto: async (offset, target) => {
      await inner.readInto(offset, target);
      took(offset, target.length);
    },
    write: refuse,
    writeZeros: refuse,
    discard: refuse,
    flush: inner.flush,
  };
}

/** Content of before a wipe may come back by itself, also when nobody runs any more. */
function changed(around: DriveSurroundings, drive: SimDrive): void {
  drive.changed(around.heap, () => note(around, drive, 'returned'));
}

function note({ heap, log, machine }: DriveSurroundings, drive: SimDrive, act: DriveEvent['act']) {
  log({ atMs: heap.nowMs, machine, serial: drive.serial, act });
}

function failIfBroken({ heap, chance }: DriveSurroundings, drive: SimDrive): void {
  if (heap.nowMs < drive.traits.failsUntilMs || chance.happens(0.004)) {
    throw new DeviceError('I/O error: write', { operation: 'write' });
  }
}
