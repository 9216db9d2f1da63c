/** Identity and hardware of the Linux machine we run on: SMBIOS, /proc, network cards. */
import { create } from '@bufbuild/protobuf';
import { SystemIdentitySchema } from '@rackwright/messages';
import type { Exec } from '@rackwright/platform';
import type { Machine, MachineHardware } from '../machine/machine.ts';
import { linuxBurnIn } from './burn-in.ts';
import { readNeighbors } from './lldp-folder.ts';
import { ownArchitecture } from './own-architecture.ts';
import { memoryModulesIn } from './smbios.ts';
import { cleanText } from './sys-block.ts';
import { namesIn, readBytes, readNumber, readText, resolvePath } from './sys-files.ts';
import { realRoots, type SysRoots } from './sys-roots.ts';

const askTimeoutMs = 20_000;
const answerBytesMax = 4096;
/** Hello waits for it, and the agent does not wait long for Hello. */
const lanTimeoutMs = 5_000;
/** SMBIOS 3.6 §7.2: the UUID is at offset 8 of the type 1 structure, 16 bytes. */
const uuidOffset = 8;
const uuidBytes = 16;

export function linuxMachine(exec: Exec, roots: SysRoots = realRoots): Machine {
  const dmi = (file: string): Promise<string> => readText(roots.sys, 'class/dmi/id', file);
  let bmcAddress: Promise<string> | undefined;
  return {
    architecture: ownArchitecture,
    identity: async () =>
      create(SystemIdentitySchema, {
        manufacturer: cleanText(await dmi('sys_vendor')),
        product: cleanText(await dmi('product_name')),
        serial: cleanText(await dmi('product_serial')),
        uuid: await readUuid(roots),
        bmcGuid: await readBmcGuid(exec, roots),
        chassisSerial: cleanText(await dmi('chassis_serial')),
        boardSerial: cleanText(await dmi('board_serial')),
        assetTag: cleanText(await dmi('chassis_asset_tag')),
      }),
    hardware: () => readHardware(roots),
    // Asked once in a boot: each answer takes the BMC a while.
    bmcAddress: () => (bmcAddress ??= readBmcAddress(exec, roots)),
    burnIn: linuxBurnIn(roots),
    bootId: () => readText(roots.proc, 'sys/kernel/random/boot_id'),
    uptimeMs: async () => {
      const [seconds = '0'] = (await readText(roots.proc, 'uptime')).split(' ');
      return Number(seconds) * 1000;
    },
    toolVersions: async () => ({
      kernel: await readText(roots.proc, 'sys/kernel/osrelease'),
      node: process.versions.node,
      ...(await version(exec, 'nvme', ['version'])),
      ...(await version(exec, 'blkdiscard', ['--version'])),
    }),
  };
}

/** Raw from the SMBIOS table; the text in /sys is turned (and useless for a wrong version). */
async function readUuid(roots: SysRoots): Promise<Uint8Array> {
  const table = await readBytes(roots.sys, 'firmware/dmi/entries/1-0/raw');
  if (table.length >= uuidOffset + uuidBytes) {
    return table.slice(uuidOffset, uuidOffset + uuidBytes);
  }
  const text = (await readText(roots.sys, 'class/dmi/id/product_uuid')).replaceAll('-', '');
  return new Uint8Array(Buffer.from(text, 'hex'));
}

/** Get System GUID (IPMI 2.0 §22.14) through the kernel's driver, when there is a BMC. */
async function readBmcGuid(exec: Exec, roots: SysRoots): Promise<Uint8Array> {
  const cards = await namesIn(roots.sys, 'class/ipmi');
  if (cards.length === 0) return new Uint8Array();
  const result = await exec.run({
    file: 'ipmitool',
    args: ['raw', '0x06', '0x37'],
    timeoutMs: askTimeoutMs,
    outputBytesMax: answerBytesMax,
  });
  if (result.kind !== 'exited' || result.code !== 0) return new Uint8Array();
  const hex = result.stdout.replace(/\s/g, '');
  return /^[0-9a-f]{32}$/.test(hex) ? new Uint8Array(Buffer.from(hex, 'hex')) : new Uint8Array();
}

async function readBmcAddress(exec: Exec, roots: SysRoots): Promise<string> {
  const cards = await namesIn(roots.sys, 'class/ipmi');
  if (cards.length === 0) return '';
  const result = await exec.run({
    file: 'ipmitool',
    args: ['lan', 'print'],
    timeoutMs: lanTimeoutMs,
    outputBytesMax: answerBytesMax,
  });
  return result.kind === 'exited' ? addressIn(result.stdout) : '';
}

/** The address in what `ipmitool lan print` writes; empty when the BMC has none. */
export function addressIn(lanPrint: string): string {
  const [, address = ''] = /^IP Address +: (\d{1,3}(?:\.\d{1,3}){3})\s*$/m.exec(lanPrint) ?? [];
  return address === '0.0.0.0' ? '' : address;
}

async function readHardware(roots: SysRoots): Promise<MachineHardware> {
  const memory = /^MemTotal:\s+(\d+) kB/m.exec(await readText(roots.proc, 'meminfo'));
  return {
    cpus: readCpus(await readText(roots.proc, 'cpuinfo')),
    memoryBytes: BigInt(memory?.[1] ?? 0) * 1024n,
    interfaces: await readInterfaces(roots),
    memoryModules: memoryModulesIn(await readBytes(roots.sys, 'firmware/dmi/tables/DMI')),
    firmware: await readFirmware(roots),
  };
}

/** The BMC's version is as its driver reads it (IPMI 2.0 §20.1). */
async function readFirmware({ sys }: SysRoots): Promise<MachineHardware['firmware'] & {}> {
  const bios = cleanText(await readText(sys, 'class/dmi/id/bios_version'));
  const [card = ''] = await namesIn(sys, 'class/ipmi');
  const bmc = cleanText(await readText(sys, 'class/ipmi', card, 'device/bmc/firmware_revision'));
  const all = [
    { name: 'BIOS', version: bios },
    { name: 'BMC', version: card === '' ? '' : bmc },
  ];
  return all.filter(({ version }) => version !== '');
}

/** One entry per socket. A machine that does not report its sockets has one. */
export function readCpus(cpuinfo: string): MachineHardware['cpus'] {
  const sockets = new Map<string, { model: string; cores: Set<string>; threads: number }>();
  for (const paragraph of cpuinfo.split('\n\n')) {
    const field = (name: string): string =>
      new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(paragraph)?.[1] ?? '';
    if (field('processor') === '') continue;
    const id = field('physical id');
    const known = sockets.get(id) ?? {
      model: cleanText(field('model name')),
      cores: new Set<string>(),
      threads: 0,
    };
    known.cores.add(field('core id') || field('processor'));
    known.threads += 1;
    sockets.set(id, known);
  }
  return [...sockets.values()].map(({ model, cores, threads }) => {
    return { model, cores: cores.size, threads };
  });
}

/** Network cards: interfaces that have a device behind them. */
async function readInterfaces(roots: SysRoots): Promise<MachineHardware['interfaces']> {
  const found: MachineHardware['interfaces'] = [];
  const cards: string[] = [];
  for (const name of await namesIn(roots.sys, 'class/net')) {
    if ((await resolvePath(roots.sys, 'class/net', name, 'device')) !== '') cards.push(name);
  }
  const heard = await readNeighbors(cards, roots);
  for (const name of cards) {
    const folder = `${roots.sys}/class/net/${name}`;
    found.push({
      name,
      mac: await readText(folder, 'address'),
      // -1 without a link reads as 0.
      speedMbps: await readNumber(folder, 'speed'),
      linkUp: (await readText(folder, 'carrier')) === '1',
      ...heard.get(name),
    });
  }
  return found;
}

async function version(
  exec: Exec,
  file: string,
  args: readonly string[],
): Promise<Record<string, string>> {
  const options = { timeoutMs: askTimeoutMs, outputBytesMax: answerBytesMax };
  const result = await exec.run({ file, args, ...options });
  if (result.kind !== 'exited') return {};
  const [first = ''] = result.stdout.split('\n');
  return first === '' ? {} : { [file]: cleanText(first) };
}
