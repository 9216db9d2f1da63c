/**
 * The disks of a machine of the lab: their files, and the QEMU arguments that make them.
 *
 * 1. A disk is a file that QEMU opens, or, when it `isServed`, what a block server of the scenario
 *    shows of that file.
 */
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { writePattern } from './disk-image.ts';
import type { QmpCommand } from './qmp-command.ts';

const MIB = 1024 * 1024;
/** Where the targets of `scsiGeneric` disks listen in the lab's namespace; one more for each. */
export const ISCSI_PORT = 9200;
export const ISCSI_NAME_PREFIX = 'iqn.2020-01.example.lab:';

/** A kind of access that the disk answers with an I/O error. */
export type DiskFault = 'read' | 'write' | 'discard' | 'write-zeroes';

/**
 * What the disk is attached to. `scsiGeneric` passes its commands through to an iSCSI target of the
 * scenario; `pmem` is a file-backed NVDIMM.
 */
export type DiskBus = 'virtio' | 'nvme' | 'scsi' | 'sd' | 'pmem' | 'scsiGeneric';

/** A disk of a machine. */
export interface DiskSpec {
  readonly name: string;
  readonly bus: DiskBus;
  readonly mebibytes: number;
  /** Only so much at its end is full of its pattern; the rest of the file is a hole. */
  readonly patternMebibytes?: number;
  /** Nothing is on it at first; else it is full of its pattern. */
  readonly isBlank?: boolean;
  /** A lying disk reports success for a discard and keeps the data. */
  readonly lies?: boolean;
  readonly failing?: readonly DiskFault[];
  /** A block server shows it, at `LabDisk.socket`; the scenario starts that before the machine. */
  readonly isServed?: boolean;
  /** It lies on the shelf at first: its file is there, and no device. */
  readonly isSpare?: boolean;
  /** Absent: one of its own. */
  readonly serial?: string;
}

/** A disk with its files. */
export interface LabDisk extends DiskSpec {
  readonly serial: string;
  readonly bytes: number;
  readonly image: string;
  /** Names the disk in its pattern. */
  readonly patternName: string;
  /** Where its block server listens, if it has one. */
  readonly socket: string;
}

/** The usual machine: one virtio and one NVMe disk. */
export function usualDisks(mebibytes = 64): DiskSpec[] {
  return [
    { name: 'disk0', bus: 'virtio', mebibytes },
    { name: 'disk1', bus: 'nvme', mebibytes },
  ];
}

/** Gives a disk its files in the machine's folder; `machine` tells its machine from others. */
export function labDisk(spec: DiskSpec, folder: string, machine: string): LabDisk {
  const own = `LAB${machine}${spec.name.toUpperCase()}`;
  return {
    ...spec,
    serial: spec.serial ?? own,
    bytes: spec.mebibytes * MIB,
    image: join(folder, `${spec.name}.raw`),
    patternName: own,
    socket: join(folder, `${spec.name}.sock`),
  };
}

/** Makes the disk's file. */
export function fillDisk(disk: LabDisk): void {
  const { isBlank, image, patternName, bytes, patternMebibytes } = disk;
  const patternBytes = isBlank === true ? 0 : (patternMebibytes ?? disk.mebibytes) * MIB;
  writePattern(image, patternName, patternBytes, bytes - patternBytes);
  if (isBlank === true) truncateSync(image, bytes);
}

/** Whether QEMU keeps a log of what arrives at the disk. */
export function hasBlockLog(disk: LabDisk): boolean {
  return (
    disk.isServed !== true &&
    disk.isSpare !== true &&
    (disk.bus === 'virtio' || disk.bus === 'nvme')
  );
}

/** The log of what arrived at the disk after the power-on `boot`. */
export function blockLog(disk: LabDisk, boot: number | string): string {
  return disk.image.replace(/raw$/, `boot-${boot}.blocklog`);
}

/** The machine's memory: persistent memory has its place above the rest. */
export function memoryArgs(mebibytes: number, disks: readonly LabDisk[]): string[] {
  const count = disks.filter(({ bus }) => bus === 'pmem').length;
  if (count === 0) return ['-m', String(mebibytes)];
  return ['-m', `${mebibytes},slots=${count},maxmem=8G`, '-machine', 'nvdimm=on'];
}

/** All disks of a machine. `firstDisk` is what the first one's device gets in addition. */
export function diskArgs(all: readonly LabDisk[], firstDisk: string): string[] {
  const disks = all.filter(({ isSpare }) => isSpare !== true);
  const needsScsi = disks.some(({ bus }) => bus === 'scsi' || bus === 'scsiGeneric');
  const targets = disks.filter(({ bus }) => bus === 'scsiGeneric');
  return [
    ...(needsScsi ? ['-device', 'virtio-scsi-pci,id=scsi0'] : []),
    ...disks.flatMap((disk, n) => {
      const backing = backingArgs(disk, ISCSI_PORT + targets.indexOf(disk));
      return [...backing, ...deviceArgs(disk, n === 0 ? firstDisk : '')];
    }),
  ];
}

function backingArgs(disk: LabDisk, iscsiPort: number): string[] {
  if (disk.bus === 'pmem') {
    const where = `mem-path=${disk.image},size=${disk.bytes}`;
    return ['-object', `memory-backend-file,id=${disk.name},share=on,${where}`];
  }
  if (disk.bus === 'scsiGeneric') {
    const portal = `transport=tcp,portal=127.0.0.1:${iscsiPort}`;
    const target = `target=${ISCSI_NAME_PREFIX}${disk.name},lun=0`;
    return ['-blockdev', `driver=iscsi,node-name=${disk.name},${portal},${target}`];
  }
  return disk.isServed === true ? ['-blockdev', servedNode(disk)] : fileChain(disk);
}

/** The block node of a served disk, as `-blockdev` takes it. */
function servedNode(disk: LabDisk): string {
  const server = `server.type=unix,server.path=${disk.socket}`;
  return `driver=nbd,node-name=${disk.name},${server},discard=unmap`;
}

/**
 * The disk as a chain: file ← raw (which lies, if it is to) ← faults, if any ← the log of all that
 * arrives ← the device. The log stands above lie and faults: it shows what the device was asked.
 */
function fileChain(disk: LabDisk): string[] {
  const { name } = disk;
  const discard = disk.lies === true ? 'ignore' : 'unmap';
  const faults = (disk.failing ?? []).map(
    (kind, n) =>
      `,inject-error.${n}.event=none,inject-error.${n}.iotype=${kind},inject-error.${n}.errno=5`,
  );
  const isLogged = hasBlockLog(disk);
  const raw = isLogged || faults.length > 0 ? `${name}-raw` : name;
  const faulty = isLogged ? `${name}-fault` : name;
  const below = faults.length === 0 ? raw : faulty;
  const chain = [
    ...['-blockdev', `driver=file,node-name=${name}-file,filename=${disk.image},discard=unmap`],
    ...['-blockdev', `driver=raw,node-name=${raw},file=${name}-file,discard=${discard}`],
    ...(faults.length === 0
      ? []
      : [
          '-blockdev',
          `driver=blkdebug,node-name=${faulty},image=${raw},discard=unmap${faults.join('')}`,
        ]),
  ];
  if (!isLogged) return chain;
  return [
    ...chain,
    ...['-blockdev', `driver=file,node-name=${name}-log,filename=${blockLog(disk, '@BOOT@')}`],
    ...[
      '-blockdev',
      `driver=blklogwrites,node-name=${name},file=${below},log=${name}-log,` +
        'log-super-update-interval=1,discard=unmap',
    ],
  ];
}

function deviceArgs(disk: LabDisk, firstDisk: string): string[] {
  const sd = disk.bus === 'sd' ? ['-device', `sdhci-pci,id=${disk.name}-reader`] : [];
  const { driver, ...properties } = deviceOf(disk);
  const words = [driver, ...Object.entries(properties).map(([key, value]) => `${key}=${value}`)];
  return [...sd, '-device', `${words.join(',')}${firstDisk}`];
}

/** A device as `device_add` takes it. */
export type DeviceProperties = Readonly<Record<string, string>> & { readonly driver: string };

/** The device that shows the disk's node to the machine; its id is `NAME-device`. */
export function deviceOf({ bus, name, serial }: LabDisk): DeviceProperties {
  const id = `${name}-device`;
  switch (bus) {
    case 'virtio':
      return { driver: 'virtio-blk-pci', id, drive: name, serial };
    case 'nvme':
      return { driver: 'nvme', id, drive: name, serial };
    case 'scsi':
      return { driver: 'scsi-hd', bus: 'scsi0.0', id, drive: name, serial };
    case 'scsiGeneric':
      return { driver: 'scsi-generic', bus: 'scsi0.0', id, drive: name };
    case 'sd':
      return { driver: 'sd-card', id, drive: name }; // into the reader before it
    case 'pmem':
      return { driver: 'nvdimm', id, memdev: name };
  }
}

/** Commands that plug a spare, whose file is as it is, into a running machine. */
export function plugCommands(disk: LabDisk): QmpCommand[] {
  const file = { driver: 'file', filename: disk.image, discard: 'unmap' };
  const node = { driver: 'raw', 'node-name': disk.name, discard: 'unmap', file };
  return [
    { execute: 'blockdev-add', arguments: node },
    { execute: 'device_add', arguments: deviceOf(disk) },
  ];
}
