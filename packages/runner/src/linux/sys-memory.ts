/**
 * Persistent memory: the NVDIMM bus in /sys (drivers/nvdimm), CXL memory devices, and the tables
 * and address ranges that show it when no driver does. Reads only.
 *
 * Invariants:
 * P1 A module, a namespace and unallocated space without a block device are signs.
 * P2 A block device that is smaller than its namespace hides the part that its mode uses itself.
 */
import { join } from 'node:path';
import type { CapacityFacts, StorageSign } from '@rackwright/erasure';
import { makeSign } from './make-sign.ts';
import { namesIn, readNumber, readText, resolvePath } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

/** Modules that one region is interleaved over; ACPI knows of no more (6.4 §5.2.25). */
const mappingsMax = 32;

export function isMemoryBlock(name: string): boolean {
  return /^pmem\d+(\.\d+)?s?$/.test(name);
}

/** The folders of a pmem block device's namespace and region, from its place in /sys. */
async function foldersOf(folder: string): Promise<{ namespace: string; region: string }> {
  // Two folders above is the namespace, or the layer on it (btt, pfn) that gives its name.
  const layer = join(folder, '../..');
  const region = join(layer, '..');
  const above = await readText(layer, 'namespace');
  return { region, namespace: above === '' ? layer : join(region, above) };
}

/**
 * From the modules that it lies on and where there it begins; else the namespace's own id; else
 * its physical address. Empty when nothing of that is known.
 */
export async function readMemorySerial(folder: string): Promise<string> {
  const { namespace, region } = await foldersOf(folder);
  const names = await mappedModules(region);
  const modules = await Promise.all(names.map((name) => moduleId(join(region, '..', name))));
  const start = await readText(namespace, 'resource');
  const offset = Number(start) - Number(await readText(region, 'resource'));
  const known = modules.filter((id) => id !== '').join('+');
  if (known !== '') return offset > 0 ? `${known}@${offset}` : known;
  return (await readText(namespace, 'uuid')) || (start === '' ? '' : `pmem-${start}`);
}

export async function readMemoryCapacity(
  folder: string,
  sizeBytes: number,
): Promise<CapacityFacts> {
  const { namespace } = await foldersOf(folder);
  const namespaceBytes = await readNumber(namespace, 'size');
  if (namespaceBytes === 0) {
    return { kind: 'notExamined', reason: 'its namespace does not say its size' };
  }
  return {
    kind: 'examined',
    nativeBytes: Math.max(namespaceBytes, sizeBytes),
    hostProtectedBytes: Math.max(0, namespaceBytes - sizeBytes),
    overlayBytes: 0,
  };
}

/** `mapping0: nmem0,0,67108864,0`: module, start, length, position. */
async function mappedModules(region: string): Promise<string[]> {
  const count = Math.min(await readNumber(region, 'mappings'), mappingsMax);
  const lines = await Promise.all(
    Array.from({ length: count }, (_, at) => readText(region, `mapping${at}`)),
  );
  return lines.map((line) => line.split(',')[0] ?? '').filter((name) => name !== '');
}

async function moduleId(folder: string): Promise<string> {
  return (await readText(folder, 'nfit/id')) || (await readText(folder, 'papr/id'));
}

export async function readMemorySigns(roots: SysRoots): Promise<StorageSign[]> {
  const names = await namesIn(roots.sys, 'bus/nd/devices');
  const blocks = (await namesIn(roots.sys, 'block')).filter(isMemoryBlock);
  const paths = await Promise.all(
    blocks.map(async (name) => ({ name, path: await resolvePath(roots.sys, 'block', name) })),
  );
  const context = { roots, names, paths };
  const own = [
    ...(await moduleSigns(context)),
    ...(await namespaceSigns(context)),
    ...(await unallocatedSigns(context)),
    ...(await cxlSigns(roots)),
  ];
  return own.length > 0 || paths.length > 0 ? own : await firmwareSigns(roots);
}

interface NdBus {
  readonly roots: SysRoots;
  readonly names: readonly string[];
  readonly paths: readonly { readonly name: string; readonly path: string }[];
}

async function blocksIn({ roots, paths }: NdBus, region: string): Promise<string[]> {
  const folder = await resolvePath(roots.sys, 'bus/nd/devices', region);
  return paths.filter(({ path }) => path.startsWith(`${folder}/`)).map(({ name }) => name);
}

async function moduleSigns(bus: NdBus): Promise<StorageSign[]> {
  const regions = await Promise.all(
    regionsOf(bus).map(async (region) => ({
      modules: await mappedModules(join(bus.roots.sys, 'bus/nd/devices', region)),
      blocks: await blocksIn(bus, region),
    })),
  );
  const signs: StorageSign[] = [];
  for (const name of bus.names.filter((each) => /^nmem\d+$/.test(each))) {
    const mine = regions.filter(({ modules }) => modules.includes(name));
    const security = await readText(bus.roots.sys, 'bus/nd/devices', name, 'security');
    const detail = mine.length === 0 ? 'an NVDIMM in no region' : 'an NVDIMM';
    signs.push(
      makeSign('persistentMemory', name, {
        serial: await moduleId(join(bus.roots.sys, 'bus/nd/devices', name)),
        detail: security === '' ? detail : `${detail}, security ${security}`,
        devices: mine.flatMap(({ blocks }) => blocks),
      }),
    );
  }
  return signs;
}

/** Namespaces that hold something and of which no block device is made (device DAX, no driver). */
async function namespaceSigns(bus: NdBus): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of bus.names.filter((each) => /^namespace\d+\.\d+$/.test(each))) {
    const folder = join(bus.roots.sys, 'bus/nd/devices', name);
    const sizeBytes = await readNumber(folder, 'size');
    if (sizeBytes === 0) continue;
    const region = join(await resolvePath(folder), '..');
    const holder = (await readText(folder, 'holder')) || name;
    const devices = bus.paths
      .filter(({ path }) => path.startsWith(`${join(region, holder)}/`))
      .map((each) => each.name);
    const detail = `a namespace in mode ${(await readText(folder, 'mode')) || 'raw'}`;
    signs.push(makeSign('persistentMemory', name, { sizeBytes, detail, devices }));
  }
  return signs;
}

async function unallocatedSigns(bus: NdBus): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of regionsOf(bus)) {
    const folder = join(bus.roots.sys, 'bus/nd/devices', name);
    const sizeBytes = await readNumber(folder, 'available_size');
    // Regions without labels (nstype 4) are one namespace, and report all space as available.
    if (sizeBytes === 0 || (await readText(folder, 'nstype')) === '4') continue;
    signs.push(
      makeSign('persistentMemory', name, { sizeBytes, detail: 'space that is in no namespace' }),
    );
  }
  return signs;
}

function regionsOf({ names }: NdBus): string[] {
  return names.filter((each) => /^region\d+$/.test(each));
}

/** CXL memory devices that report memory which keeps its content without power. */
async function cxlSigns({ sys }: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  for (const name of await namesIn(sys, 'bus/cxl/devices')) {
    if (!/^mem\d+$/.test(name)) continue;
    const folder = join(sys, 'bus/cxl/devices', name);
    const sizeBytes = Number(await readText(folder, 'pmem/size'));
    if (!(sizeBytes > 0)) continue;
    const serial = await readText(folder, 'serial');
    signs.push(makeSign('persistentMemory', name, { sizeBytes, serial, detail: 'CXL memory' }));
  }
  return signs;
}

/** With no device at all: the firmware's table, and ranges of memory that it calls persistent. */
async function firmwareSigns({ sys, proc }: SysRoots): Promise<StorageSign[]> {
  const signs: StorageSign[] = [];
  if ((await namesIn(sys, 'firmware/acpi/tables')).includes('NFIT')) {
    const detail = 'the firmware describes NVDIMMs, and no driver shows any';
    signs.push(makeSign('persistentMemory', 'NFIT', { source: 'firmware', detail }));
  }
  for (const line of (await readText(proc, 'iomem')).split('\n')) {
    const match = /^\s*([\da-f]+)-([\da-f]+) : Persistent Memory/.exec(line);
    if (match === null) continue;
    const [, from = '', to = ''] = match;
    const sizeBytes = Number.parseInt(to, 16) - Number.parseInt(from, 16) + 1;
    const safe = Number.isSafeInteger(sizeBytes) && sizeBytes > 0 ? sizeBytes : 0;
    signs.push(
      makeSign('persistentMemory', `0x${from}`, {
        source: 'kernel',
        sizeBytes: safe,
        detail: 'a range of persistent memory',
      }),
    );
  }
  return signs;
}
