/**
 * A machine of the lab: which disks, card and identity it has, and the QEMU arguments that make it.
 * Who starts it is its BMC (ipmi-sim.ts); nothing here starts anything.
 */
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePattern } from './disk-image.ts';
import { boardArgs, bootOrder, type LabFirmware } from './firmware.ts';

const MEMORY_MIB = 1024;
const MIB = 1024 * 1024;

/** A kind of access that the disk answers with an I/O error. */
export type DiskFault = 'read' | 'write' | 'discard' | 'write-zeroes';

/** A disk of a machine. */
export interface DiskSpec {
  readonly name: string;
  readonly bus: 'virtio' | 'nvme';
  readonly mebibytes: number;
  /** Nothing is on it at first; else it is full of its pattern. */
  readonly isBlank?: boolean;
  /** A lying disk reports success for a discard and keeps the data. */
  readonly lies?: boolean;
  readonly failing?: readonly DiskFault[];
}

/** What a machine is to be. */
export interface MachineSpec {
  readonly name: string;
  /** One, unless it says more: scenarios run side by side. */
  readonly processors?: number;
  readonly disks: readonly DiskSpec[];
}

/** A disk with its files. */
export interface LabDisk extends DiskSpec {
  readonly serial: string;
  readonly bytes: number;
  readonly image: string;
  /** Names the disk in its pattern. */
  readonly patternName: string;
}

/** A machine with its folder and identity. */
export interface LabMachine {
  readonly name: string;
  readonly index: number;
  readonly folder: string;
  readonly mac: string;
  readonly uuid: string;
  readonly serial: string;
  readonly disks: readonly LabDisk[];
  readonly serialLog: string;
  /** All that it has written to its serial port. */
  console(): string;
  /** How often it was powered on. */
  boots(): number;
  /** The disk's own log of each power-on, in order. */
  blockLogs(disk: LabDisk): string[];
}

/** The usual machine: one virtio and one NVMe disk. */
export function usualDisks(mebibytes = 64): DiskSpec[] {
  return [
    { name: 'disk0', bus: 'virtio', mebibytes },
    { name: 'disk1', bus: 'nvme', mebibytes },
  ];
}

/** Makes the machine's folder, its disks filled with the pattern, and its QEMU arguments. */
export function makeMachine(options: {
  readonly spec: MachineSpec;
  readonly firmware: LabFirmware;
  readonly index: number;
  readonly labFolder: string;
  readonly accelerator: 'kvm' | 'tcg';
  readonly inBandPort: number;
}): LabMachine {
  const { spec, index } = options;
  const folder = join(options.labFolder, spec.name);
  mkdirSync(folder);
  const two = (index + 1).toString(16).padStart(2, '0');
  const disks = spec.disks.map((disk): LabDisk => {
    const serial = `LAB${two.toUpperCase()}${disk.name.toUpperCase()}`;
    return {
      ...disk,
      serial,
      bytes: disk.mebibytes * MIB,
      image: join(folder, `${disk.name}.raw`),
      patternName: serial,
    };
  });
  const blockLog = (disk: LabDisk, boot: number | string): string =>
    join(folder, `${disk.name}.boot-${boot}.blocklog`);
  const boots = (): number => {
    try {
      return Number(readFileSync(join(folder, 'boots'), 'utf8'));
    } catch {
      return 0; // never powered on
    }
  };
  const machine: LabMachine = {
    name: spec.name,
    index,
    folder,
    mac: `52:54:00:77:00:${two}`,
    uuid: `6f1b2c3d-4e5f-4a6b-8c7d-0000000000${two}`,
    serial: `RWLAB-${two.toUpperCase()}`,
    disks,
    serialLog: join(folder, 'console.log'),
    console: () => readFileSync(join(folder, 'console.log'), 'latin1'),
    boots,
    blockLogs: (disk) => Array.from({ length: boots() }, (_, n) => blockLog(disk, n + 1)),
  };
  for (const { isBlank, image, patternName, bytes } of disks) {
    writePattern(image, patternName, isBlank === true ? 0 : bytes);
    if (isBlank === true) truncateSync(image, bytes);
  }
  writeFileSync(machine.serialLog, '');
  const lines = (items: readonly string[]): string => items.map((item) => `${item}\n`).join('');
  writeFileSync(join(folder, 'boot-files'), lines(disks.map((disk) => blockLog(disk, '@BOOT@'))));
  const board = boardArgs(options.firmware, folder);
  for (const [device, order] of [
    ['pxe', 'n'],
    ['disk', 'c'],
    ['own', 'own'],
  ] as const) {
    if (order === 'own' && options.firmware === 'bios') continue; // it has none
    const { card, firstDisk, args: orderArgs } = bootOrder(options.firmware, order);
    const args = [
      ...qemuArgs(machine, options.accelerator, options.inBandPort, card),
      ...['-smp', String(spec.processors ?? 1)],
      ...board,
      ...orderArgs,
      ...disks.flatMap((disk, n) => diskArgs(disk, blockLog(disk, '@BOOT@'), n ? '' : firstDisk)),
    ];
    writeFileSync(join(folder, `qemu-${device}.args`), lines(args));
  }
  return machine;
}

function qemuArgs(
  machine: LabMachine,
  accelerator: string,
  inBandPort: number,
  card: string,
): string[] {
  return [
    // With entropy of its own, as real machines have it: Node would wait a second for it.
    ...['-name', machine.name, '-accel', accelerator, '-cpu', 'qemu64,+rdrand'],
    ...['-m', String(MEMORY_MIB), '-display', 'none', '-nodefaults', '-no-user-config'],
    ...['-daemonize', '-pidfile', join(machine.folder, 'qemu.pid')],
    ...['-chardev', `file,id=console,path=${machine.serialLog},append=on`],
    ...['-serial', 'chardev:console'],
    ...['-qmp', `unix:${join(machine.folder, 'qmp.sock')},server=on,wait=off`],
    ...[
      '-smbios',
      `type=1,manufacturer=Rackwright,product=Lab,uuid=${machine.uuid},serial=${machine.serial}`,
    ],
    ...['-netdev', `tap,id=n0,ifname=tap${machine.index},script=no,downscript=no`],
    ...['-device', `virtio-net-pci,netdev=n0,mac=${machine.mac}${card}`],
    ...['-chardev', `socket,id=bmc,host=127.0.0.1,port=${inBandPort},reconnect=1`],
    ...['-device', 'ipmi-bmc-extern,id=bmc0,chardev=bmc', '-device', 'isa-ipmi-kcs,bmc=bmc0'],
  ];
}

/**
 * The disk as a chain: file ← raw (which lies, if it is to) ← faults, if any ← the log of all that
 * arrives ← the device. The log stands above lie and faults: it shows what the device was asked.
 */
function diskArgs(disk: LabDisk, log: string, bootIndex: string): string[] {
  const { name } = disk;
  const discard = disk.lies === true ? 'ignore' : 'unmap';
  const faults = (disk.failing ?? []).map(
    (kind, n) =>
      `,inject-error.${n}.event=none,inject-error.${n}.iotype=${kind},inject-error.${n}.errno=5`,
  );
  const below = faults.length === 0 ? `${name}-raw` : `${name}-fault`;
  const device =
    disk.bus === 'nvme'
      ? `nvme,drive=${name},serial=${disk.serial}`
      : `virtio-blk-pci,drive=${name},serial=${disk.serial}`;
  return [
    ...['-blockdev', `driver=file,node-name=${name}-file,filename=${disk.image},discard=unmap`],
    ...['-blockdev', `driver=raw,node-name=${name}-raw,file=${name}-file,discard=${discard}`],
    ...(faults.length === 0
      ? []
      : [
          '-blockdev',
          `driver=blkdebug,node-name=${below},image=${name}-raw,discard=unmap${faults.join('')}`,
        ]),
    ...['-blockdev', `driver=file,node-name=${name}-log,filename=${log}`],
    ...[
      '-blockdev',
      `driver=blklogwrites,node-name=${name},file=${below},log=${name}-log,` +
        'log-super-update-interval=1,discard=unmap',
    ],
    ...['-device', `${device}${bootIndex}`],
  ];
}
