/**
 * NVMe controllers and their namespaces in /sys. A controller with all its namespaces is one
 * device; controllers of one subsystem (a drive with two ports) are one device as well.
 */
import { join } from 'node:path';
import type { DeviceFacts, Transport } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { readNvmeFacts } from './nvme.ts';
import { nvmePathNames } from './path-names.ts';
import {
  cleanText,
  type InUse,
  readHolders,
  readPartitions,
  readRegion,
  worldWideName,
} from './sys-block.ts';
import { namesIn, readNumber, readText, resolvePath } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

interface Subsystem {
  /** Kernel names; the first one speaks for all. */
  readonly controllers: string[];
  readonly namespaces: string[];
}

/** True for entries of /sys/block that belong to an NVMe controller. */
export function isNvmeBlock(name: string): boolean {
  return /^nvme\d+(c\d+)?n\d+$/.test(name);
}

/** Paths of a multipath namespace (nvme0c1n1) are hidden behind its head (nvme0n1). */
export function isNvmePath(name: string): boolean {
  return /^nvme\d+c\d+n\d+$/.test(name);
}

export async function readNvmeDevices(
  roots: SysRoots,
  exec: Exec,
  inUse: InUse,
): Promise<DeviceFacts[]> {
  const devices: DeviceFacts[] = [];
  for (const subsystem of await readSubsystems(roots)) {
    devices.push(await readController(roots, exec, subsystem, inUse));
  }
  return devices;
}

async function readSubsystems(roots: SysRoots): Promise<Subsystem[]> {
  const byPath = new Map<string, Subsystem>();
  for (const controller of await namesIn(roots.sys, 'class/nvme')) {
    const folder = join(roots.sys, 'class/nvme', controller);
    // Controllers of one subsystem share its NQN; one without NQN is alone. Some makers give many
    // drives one NQN, but each subsystem has one serial number (NVMe 2.0, Identify).
    const name = (await readText(folder, 'subsysnqn')) || controller;
    const key = `${name}\0${cleanText(await readText(folder, 'serial'))}`;
    const known = byPath.get(key);
    if (known === undefined) byPath.set(key, { controllers: [controller], namespaces: [] });
    else known.controllers.push(controller);
  }
  for (const name of (await namesIn(roots.sys, 'block')).filter(isNvmeBlock)) {
    if (isNvmePath(name)) continue;
    const owner = await ownerOf(roots, name, [...byPath.values()]);
    owner?.namespaces.push(name);
  }
  return [...byPath.values()];
}

/** A namespace lies under its controller or, with native multipath, under its subsystem. */
async function ownerOf(
  roots: SysRoots,
  name: string,
  subsystems: readonly Subsystem[],
): Promise<Subsystem | undefined> {
  const parent = await resolvePath(roots.sys, 'block', name, 'device');
  const parentName = parent.split('/').at(-1) ?? '';
  const below = new Set([parentName, ...(await namesIn(parent))]);
  return subsystems.find(({ controllers }) => controllers.some((each) => below.has(each)));
}

async function readController(
  roots: SysRoots,
  exec: Exec,
  { controllers, namespaces }: Subsystem,
  inUse: InUse,
): Promise<DeviceFacts> {
  const [controller = ''] = controllers;
  const folder = join(roots.sys, 'class/nvme', controller);
  const perNamespace = namespaces.map((name) => join(roots.sys, 'block', name));
  const regions = await Promise.all(
    perNamespace.map((path, at) => readRegion(path, namespaces[at] ?? '')),
  );
  const flags = async (file: string): Promise<string[]> =>
    Promise.all(perNamespace.map((path) => readText(path, file)));
  const discards = await Promise.all(
    perNamespace.map((path) => readNumber(path, 'queue/discard_max_bytes')),
  );
  const holders = await Promise.all(
    perNamespace.map((path, at) => readHolders(path, namespaces[at] ?? '', inUse)),
  );
  const partitions = await Promise.all(
    perNamespace.map((path, at) => readPartitions(path, namespaces[at] ?? '')),
  );
  const shownIds = await Promise.all(
    perNamespace.map((path, at) => readNamespaceId(path, namespaces[at] ?? '')),
  );
  const [wwid = ''] = await flags('wwid');
  const nvme = await readNvmeFacts(exec, controller, namespaces, shownIds);
  return {
    name: controller,
    transport: await transportOf(roots, controllers),
    model: cleanText(await readText(folder, 'model')),
    serial: cleanText(await readText(folder, 'serial')),
    wwn: worldWideName(wwid),
    firmware: cleanText(await readText(folder, 'firmware_rev')),
    sizeBytes: regions.reduce((sum, region) => sum + region.sizeBytes, 0),
    rotational: false,
    removable: false,
    readOnly: (await flags('ro')).includes('1'),
    discardSupported: discards.length > 0 && discards.every((bytes) => bytes > 0),
    discardZeroes: nvme.deallocatedByte !== undefined,
    raidVolume: false,
    holders: holders.flat(),
    regions,
    partitions: partitions.flat(),
    nvme,
    mediaType: 'ssd',
    paths: nvmePathNames(await resolvePath(folder), shownIds),
  };
}

/** Older kernels do not report it; their names end with it. */
async function readNamespaceId(path: string, name: string): Promise<number> {
  return (await readNumber(path, 'nsid')) || Number(/n(\d+)$/.exec(name)?.[1] ?? 0);
}

async function transportOf(roots: SysRoots, controllers: readonly string[]): Promise<Transport> {
  for (const controller of controllers) {
    const transport = await readText(roots.sys, 'class/nvme', controller, 'transport');
    if (transport !== 'pcie') return transport === '' ? 'unknown' : 'nvmeFabrics';
  }
  return 'nvme';
}
