/**
 * The disks that lie, machine by machine: as few power-ons as the lies allow, for each takes
 * minutes. Every disk is a case of its own.
 */
import { erasuresAtOnceMax, type LabCheck } from '@rackwright/runner';
import type { Lie } from '../../liars/lies.ts';
import type { ScsiDiskFacts } from '../../liars/scsi-disk.ts';
import type { DiskSpec } from '../../qemu-disks.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const TIB = 1024 * 1024 * MIB;
/** How long zeros are read where nothing was erased. */
const ZEROS_MS = 90_000;
const PLACE: Lie & { kind: 'keeps' } = {
  kind: 'keeps',
  span: { offset: 21 * MIB + 5 * 64 * KIB, length: 64 * KIB },
};

/** A disk and what it does to the one that trusts it. */
export interface LiarDisk extends DiskSpec {
  /** What it says or does, for the table. */
  readonly says: string;
  readonly lie?: Lie;
  /** Of a disk whose commands pass through: what it says of itself beside its serial. */
  readonly scsi?: Omit<ScsiDiskFacts, 'serial'>;
  /** Likewise: from the first write on it calls itself so. */
  readonly laterSerial?: string;
  /** How words that name it name it; absent: by its serial. */
  readonly handle?: RegExp;
}

/** Whether the disk does something else than it says, which it counts. */
export function isLying({ lie, scsi, laterSerial }: LiarDisk): boolean {
  const lies = scsi?.admittedBytes !== undefined || scsi?.sanitize === 'onlySaysSo';
  return lie !== undefined || laterSerial !== undefined || lies;
}

/** What happens to disks while others are being erased. */
export interface Swap {
  /** The disk that is pulled. */
  readonly planned: string;
  /** The spare that is plugged in its place. */
  readonly foreign: string;
  /** Pulled before anything was written to it, or while it is written. */
  readonly when: 'queued' | 'writing';
}

/** A machine of liars. */
export interface LiarMachine {
  readonly disks: readonly LiarDisk[];
  readonly swaps?: readonly Swap[];
  /** The check that catches them: without it they get through. */
  readonly check?: LabCheck;
  /** Words for `host create`: a policy that the case is about. */
  readonly policy?: readonly string[];
  /** Boots the runner once more after the clean: what is proved later has to be seen. */
  readonly bootsAgain?: boolean;
  /** It rests so long before that, milliseconds. */
  readonly restMs?: number;
}

const liar = (disk: Omit<LiarDisk, 'mebibytes' | 'isServed'>, mebibytes = 64): LiarDisk => ({
  mebibytes,
  isServed: true,
  ...disk,
});

/** A disk behind `scsi-generic`. */
const passed = (disk: Omit<LiarDisk, 'mebibytes' | 'isServed' | 'bus'>): LiarDisk =>
  liar({ bus: 'scsiGeneric', ...disk });

/** Occupies a slot of the runner while others wait behind it. */
const slow = (name: string): LiarDisk =>
  liar({ name, bus: 'scsi', says: 'honest, and slow: others wait behind it' }, 4);

/** So many that, with the one that is pulled while it is written, no slot is left. */
const slowDisks = Array.from({ length: erasuresAtOnceMax - 1 }, (_, n) => slow(`slow${n}`));

/** Forgets what it was told. */
const cache = (name: string, bus: DiskSpec['bus']): LiarDisk =>
  liar({
    name,
    bus,
    says: 'a volatile cache loses what was flushed at power-off',
    lie: { kind: 'volatile' },
  });

const spare = (name: string, bus: DiskSpec['bus']): LiarDisk => ({
  name,
  bus,
  mebibytes: 16,
  isSpare: true,
  says: 'foreign: in no plan',
});

/** All machines by name, in the order in which they run. */
export const liarMachines = {
  /** An SD card and an NVDIMM beside a usual disk. */
  beside: {
    check: 'storageSigns',
    disks: [
      { name: 'disk0', bus: 'virtio', mebibytes: 64, says: 'honest' },
      {
        name: 'card',
        bus: 'sd',
        mebibytes: 64,
        says: 'an SD card: its driver is named in uevent only',
        handle: /deadbeef|mmcblk0/i,
      },
      {
        name: 'dimm',
        bus: 'pmem',
        mebibytes: 64,
        says: 'an NVDIMM: on no PCI bus',
        handle: /pmem0|nmem0|region0/i,
      },
    ],
  },
  /** Disks are pulled and others plugged in, on three buses, queued and in the midst of a write. */
  swap: {
    check: 'heldDevice',
    disks: [
      ...slowDisks,
      liar({ name: 'written', bus: 'scsi', says: 'pulled in the midst of a write, replaced' }, 16),
      liar({ name: 'queued0', bus: 'scsi', says: 'SCSI: pulled while it waits, replaced' }, 16),
      liar({ name: 'queued1', bus: 'virtio', says: 'virtio: pulled while it waits, replaced' }, 16),
      liar({ name: 'queued2', bus: 'nvme', says: 'NVMe: pulled while it waits, replaced' }, 16),
      spare('foreign0', 'scsi'),
      spare('foreign1', 'virtio'),
      spare('foreign2', 'nvme'),
      spare('foreign3', 'scsi'),
    ],
    swaps: [
      { planned: 'queued0', foreign: 'foreign0', when: 'queued' },
      { planned: 'queued1', foreign: 'foreign1', when: 'queued' },
      { planned: 'queued2', foreign: 'foreign2', when: 'queued' },
      { planned: 'written', foreign: 'foreign3', when: 'writing' },
    ],
  },
  /** What is so only until the power goes, or until a while has passed. */
  time: {
    check: 'powerCycleRead',
    disks: [cache('cache', 'virtio')],
    bootsAgain: true,
  },
  while: {
    disks: [
      liar({
        name: 'while0',
        bus: 'nvme',
        says: 'reads zeros for 90 s after a discard, then its data',
        lie: { kind: 'zeroesForAWhile', milliseconds: ZEROS_MS },
      }),
    ],
    bootsAgain: true,
    restMs: ZEROS_MS,
  },
  /** The same caches where the policy asks for a power cycle before the certificates. */
  cycle: {
    policy: ['--power-cycle-check', 'immediate'],
    disks: [cache('cache0', 'virtio'), cache('cache1', 'scsi'), cache('cache2', 'nvme')],
  },
  /** One stretch of 64 KiB ignores what is written to it. */
  hole: {
    check: 'wholeRead',
    disks: [liar({ name: 'hole', bus: 'virtio', says: '64 KiB ignore writes', lie: PLACE }, 512)],
  },
  /** Lies about content that one reading, or two, can find. */
  content: {
    disks: [
      liar({
        name: 'once',
        bus: 'virtio',
        says: 'the first reading is right, the second is not',
        lie: { kind: 'truthfulOnce' },
      }),
      liar({
        name: 'keeps',
        bus: 'virtio',
        says: 'ignores all writes',
        lie: { kind: 'keepsAll' },
      }),
      liar({
        name: 'discards',
        bus: 'virtio', // behind SCSI here nobody discards, and the lie is never told
        says: 'ignores discards and zeroings',
        lie: { kind: 'keepsOnDiscard' },
      }),
      liar({
        name: 'misreads',
        bus: 'scsi',
        says: 'reads what nobody wrote at one place',
        lie: { kind: 'misreads', span: PLACE.span },
      }),
      liar({
        name: 'protects',
        bus: 'virtio',
        says: 'write-protected half-way',
        lie: { kind: 'protectsItselfAfter', bytes: 32 * MIB },
      }),
      liar({
        name: 'unreadable',
        bus: 'nvme',
        says: 'one stretch cannot be read',
        lie: { kind: 'breaks', span: PLACE.span, on: 'read' },
      }),
      liar({
        name: 'unwritable',
        bus: 'virtio',
        says: 'one stretch cannot be written',
        lie: { kind: 'breaks', span: PLACE.span, on: 'write' },
      }),
    ],
  },
  /** A disk that shows by another command that it has more. */
  capacity: {
    disks: [
      passed({
        name: 'admits',
        says: 'READ CAPACITY(10) admits 48 of its 64 MiB',
        scsi: { admittedBytes: 48 * MIB },
      }),
    ],
  },
  /** Disks that erase themselves, where the policy asks for it: one really does. */
  sanitize: {
    policy: ['--erasure-method', 'sanitize-overwrite'],
    disks: [
      passed({ name: 'sanitizes', says: 'honest: SANITIZE erases', scsi: { sanitize: 'erases' } }),
      passed({
        name: 'pretends',
        says: 'SANITIZE reports success and does nothing',
        scsi: { sanitize: 'onlySaysSo' },
      }),
    ],
  },
  /** Disks whose commands pass through to a target of ours. */
  scsi: {
    disks: [
      passed({
        name: 'protected',
        says: 'write-protected half-way, with the sense of it',
        lie: { kind: 'protectsItselfAfter', bytes: 32 * MIB },
      }),
      passed({
        name: 'renamed',
        says: 'its serial changes with the first write',
        laterSerial: 'ANOTHER',
        handle: /LAB01RENAMED|ANOTHER/,
      }),
    ],
  },
  /** Two disks that call themselves the same. */
  twins: {
    disks: [
      liar({ name: 'twin0', bus: 'virtio', serial: 'TWIN', says: 'one serial with another disk' }),
      liar({ name: 'twin1', bus: 'virtio', serial: 'TWIN', says: 'one serial with another disk' }),
    ],
  },
  /** Disks that have more than they admit. */
  size: {
    disks: [
      liar({
        name: 'hides',
        bus: 'virtio',
        says: 'admits 48 of its 64 MiB',
        lie: { kind: 'hides', admittedBytes: 48 * MIB },
      }),
    ],
  },
  /** A disk that tells the truth up to 2 TiB. */
  large: {
    disks: [
      liar(
        {
          name: 'large',
          bus: 'nvme',
          says: 'ignores writes above 2 TiB',
          patternMebibytes: 512,
          lie: { kind: 'keeps', span: { offset: 2 * TIB, length: 512 * MIB } },
        },
        2 * 1024 * 1024 + 512,
      ),
    ],
  },
} as const satisfies Readonly<Record<string, LiarMachine>>;

/** What no emulated device here can do, and the tests that have it from recorded answers. */
export const byFixtures = [
  {
    bus: 'sata',
    says: 'pulled while it is erased, replaced',
    test: 'packages/runner/src/liars/liars.test.ts',
  },
  {
    bus: 'sata',
    says: 'a host protected area or a device configuration overlay (DCO)',
    test: 'packages/runner/src/linux/ask-device.test.ts',
  },
  {
    bus: 'eMMC',
    says: 'boot partitions and the replay-protected block',
    test: 'packages/runner/src/linux/sys-signs.test.ts',
  },
] as const;

export type LiarName = keyof typeof liarMachines;
