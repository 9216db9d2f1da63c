/**
 * A machine of the lab: which disks, card and identity it has, and the QEMU arguments that make it.
 * Who starts it is its BMC (ipmi-sim.ts); nothing here starts anything.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  architectureOf,
  boardArgs,
  bootOrder,
  hasVirtualDrive,
  type LabFirmware,
  machineMac,
} from './firmware.ts';
import {
  blockLog,
  type DiskSpec,
  diskArgs,
  fillDisk,
  hasBlockLog,
  type LabDisk,
  labDisk,
  memoryArgs,
} from './qemu-disks.ts';

const MEMORY_MIB = 1024;
const qemuProgram = { amd64: 'qemu-system-x86_64', arm64: 'qemu-system-aarch64' } as const;
/** With entropy of its own, as real machines have it: Node would wait a second for it. */
const processor = { amd64: 'qemu64,+rdrand', arm64: 'cortex-a72' } as const;

/** What a machine is to be. */
export interface MachineSpec {
  readonly name: string;
  /** One, unless it says more: scenarios run side by side. */
  readonly processors?: number;
  readonly disks: readonly DiskSpec[];
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

/** Makes the machine's folder, its disks filled with the pattern, and its QEMU arguments. */
export function makeMachine(options: {
  readonly spec: MachineSpec;
  readonly firmware: LabFirmware;
  readonly index: number;
  readonly labFolder: string;
  readonly accelerator: 'kvm' | 'tcg';
  readonly inBandPort: number;
  readonly consolePort: number;
}): LabMachine {
  const { spec, index } = options;
  const folder = join(options.labFolder, spec.name);
  mkdirSync(folder);
  const two = (index + 1).toString(16).padStart(2, '0');
  const disks = spec.disks.map((disk) => labDisk(disk, folder, two.toUpperCase()));
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
    mac: machineMac(options.firmware, two),
    uuid: `6f1b2c3d-4e5f-4a6b-8c7d-0000000000${two}`,
    serial: `RWLAB-${two.toUpperCase()}`,
    disks,
    serialLog: join(folder, 'console.log'),
    console: () => readFileSync(join(folder, 'console.log'), 'latin1'),
    boots,
    blockLogs: (disk) => Array.from({ length: boots() }, (_, n) => blockLog(disk, n + 1)),
  };
  for (const disk of disks) fillDisk(disk);
  writeFileSync(machine.serialLog, '');
  const lines = (items: readonly string[]): string => items.map((item) => `${item}\n`).join('');
  const logged = disks.filter(hasBlockLog);
  writeFileSync(join(folder, 'qemu-program'), `${qemuProgram[architectureOf(options.firmware)]}\n`);
  writeFileSync(join(folder, 'boot-files'), lines(logged.map((disk) => blockLog(disk, '@BOOT@'))));
  const board = boardArgs(options.firmware, folder);
  for (const [device, order] of [
    ['pxe', 'n'],
    ['disk', 'c'],
    ['cdrom', 'd'],
    ['own', 'own'],
  ] as const) {
    if (order === 'own' && options.firmware === 'bios') continue; // it has none
    if (order === 'd' && !hasVirtualDrive(options.firmware)) continue; // likewise
    const { card, firstDisk, args: orderArgs } = bootOrder(options.firmware, order);
    const args = [
      ...qemuArgs(machine, options, card),
      ...['-smp', String(spec.processors ?? 1)],
      ...board,
      ...orderArgs,
      ...diskArgs(disks, firstDisk),
    ];
    writeFileSync(join(folder, `qemu-${device}.args`), lines(args));
  }
  return machine;
}

function qemuArgs(
  machine: LabMachine,
  {
    accelerator,
    firmware,
    inBandPort,
    consolePort,
  }: {
    readonly accelerator: string;
    readonly firmware: LabFirmware;
    readonly inBandPort: number;
    readonly consolePort: number;
  },
  card: string,
): string[] {
  const architecture = architectureOf(firmware);
  return [
    ...['-name', machine.name, '-accel', accelerator, '-cpu', processor[architecture]],
    ...memoryArgs(MEMORY_MIB, machine.disks),
    ...['-display', 'none', '-nodefaults', '-no-user-config'],
    ...['-daemonize', '-pidfile', join(machine.folder, 'qemu.pid')],
    // The BMC hears it for serial over LAN, and may come and go; the file has all of it.
    ...[
      '-chardev',
      `socket,id=console,host=127.0.0.1,port=${consolePort},server=on,wait=off,` +
        `logfile=${machine.serialLog},logappend=on`,
    ],
    ...['-serial', 'chardev:console'],
    ...['-qmp', `unix:${join(machine.folder, 'qmp.sock')},server=on,wait=off`],
    ...[
      '-smbios',
      `type=1,manufacturer=Rackwright,product=Lab,uuid=${machine.uuid},serial=${machine.serial}`,
    ],
    ...['-netdev', `tap,id=n0,ifname=tap${machine.index},script=no,downscript=no`],
    ...['-device', `virtio-net-pci,netdev=n0,mac=${machine.mac}${card}`],
    ...(architecture === 'arm64' ? [] : inBandArgs(inBandPort)),
  ];
}

/** The way from the operating system to its BMC. QEMU has none for boards of arm64. */
function inBandArgs(port: number): string[] {
  return [
    ...['-chardev', `socket,id=bmc,host=127.0.0.1,port=${port},reconnect=1`],
    ...['-device', 'ipmi-bmc-extern,id=bmc0,chardev=bmc', '-device', 'isa-ipmi-kcs,bmc=bmc0'],
  ];
}
