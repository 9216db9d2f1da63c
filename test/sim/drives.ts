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
  /** `challenge`: data that is not all zeros. `settled`: the device ended a format by itself. */
  readonly act: 'challenge' | 'zeros' | 'format' | 'settled' | 'osWrote';
}

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
  /** Every write fails until this time. */
  failsUntilMs: number;
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
    for (let block = 0; block * blockBytes < driveBytes; block++) this.#old.add(block);
  }

  /** The machine lost its power: a format that was under way has reached nobody knows what. */
  powerLost(nowMs: number): void {
    this.#openFor = undefined;
    if (nowMs < this.#formattingUntilMs) this.#format += 1;
    this.#formattingUntilMs = -1;
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
    this.#image = undefined;
    this.#bytes.set(bytes, offset);
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
        this.#image = undefined;
        this.#bytes.fill(0);
        this.#old.clear();
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
    hold: async (device) => {
      const drive = driveOf(device);
      drive.open(process);
      return holdDrive(around, drive, device);
    },
    dismantle: async ({ name }) => {
      throw new DeviceError(`${name} has no holders that could be taken down`);
    },
    unhide: async ({ name }) => {
      throw new DeviceError(`${name} hides nothing`);
    },
  };
}

function holdDrive(around: DriveSurroundings, drive: SimDrive, device: DeviceFacts): HeldDevice {
  const { heap, chance, process, drives } = around;
  const present = async (): Promise<void> => {
    if (drives().includes(drive)) return;
    throw new DeviceError(`${device.name} is gone`, { loss: 'vanished' });
  };
  return {
    regions: device.regions.map(() => openRegion(around, drive)),
    present,
    confirm: present,
    nvmeFormat: async () => {
      const tookMs = chance.around(8_000);
      note(around, drive, 'format');
      failIfBroken(around, drive);
      drive.beginFormat(heap, tookMs, () => note(around, drive, 'settled'));
      return process.answer(tookMs + 1, () => ['formatted']);
    },
    eraseItself: async (method) => {
      throw new DeviceError(`${device.name}: invalid opcode for ${method}`);
    },
    busyWith: async () => (drive.busyMs(heap.nowMs) > 0 ? 'a format is under way' : undefined),
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
    },
    writeZeros: async (offset, length) => {
      note(around, drive, 'zeros');
      // In pieces, so that a kill leaves a half.
      const pieces = length / blockBytes;
      for (let piece = 0; piece < pieces; piece++) {
        await process.answer(chance.around(3_000), () => undefined);
        failIfBroken(around, drive);
        drive.write(offset + piece * blockBytes, new Uint8Array(blockBytes));
      }
    },
    discard: async () => {
      throw new DeviceError('no discard here');
    },
    flush: () => process.answer(chance.around(20), () => undefined),
  };
}

function note({ heap, log, machine }: DriveSurroundings, drive: SimDrive, act: DriveEvent['act']) {
  log({ atMs: heap.nowMs, machine, serial: drive.serial, act });
}

function failIfBroken({ heap, chance }: DriveSurroundings, drive: SimDrive): void {
  if (heap.nowMs < drive.traits.failsUntilMs || chance.happens(0.004)) {
    throw new DeviceError('I/O error: write', { operation: 'write' });
  }
}
