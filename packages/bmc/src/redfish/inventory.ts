/**
 * The parts of a system as its BMC lists them (DSP0268: Processor, Memory, Drive,
 * EthernetInterface, and the versions in ComputerSystem and Manager). Bounded.
 */
import {
  type BmcDrive,
  type BmcFirmwareVersion,
  type BmcInterface,
  type BmcInventory,
  type BmcMemoryModule,
  type BmcPart,
  type BmcProcessor,
  type BmcResult,
  ok,
} from '../driver.ts';
import type { Resource } from './conversation.ts';
import { type JsonObject, numberAt, objectAt, pathOf, pathsAt, textAt } from './json.ts';

/** Parts of one kind that are read; each costs a request. */
const partsMax = 64;
const storagesMax = 16;

export type Read = (path: string) => Promise<BmcResult<Resource>>;

/**
 * Reads the wanted parts, one after another; the lists of others stay empty. Only a BMC that falls
 * silent ends it early.
 */
export async function readInventory(
  system: Resource,
  read: Read,
  wanted: readonly BmcPart[],
): Promise<BmcResult<BmcInventory>> {
  const reader = new PartReader(read);
  const path = (part: BmcPart, key: string): string | undefined => {
    return wanted.includes(part) ? pathOf(objectAt(system.body, key)) : undefined;
  };
  const processors = await reader.members(path('processors', 'Processors'));
  const memory = await reader.members(path('memory', 'Memory'));
  const storages = await reader.members(path('drives', 'Storage'), storagesMax);
  const drivePaths = storages.flatMap((storage) => pathsAt(storage, 'Drives'));
  const drives = await reader.all([...new Set(drivePaths)], partsMax);
  const interfaces = await reader.members(path('interfaces', 'EthernetInterfaces'));
  const managers = wanted.includes('firmware')
    ? await reader.all(pathsAt(objectAt(system.body, 'Links'), 'ManagedBy').slice(0, 1), 1)
    : [];
  if (reader.stopped !== undefined) return reader.stopped;
  return ok({
    processors: processors.filter(isProcessor).map(processorOf),
    memory: memory.flatMap(memoryModuleOf),
    drives: drives.filter(isThere).map(driveOf),
    interfaces: interfaces.flatMap(interfaceOf),
    firmware: wanted.includes('firmware')
      ? [
          ...versionOf('BIOS', textAt(system.body, 'BiosVersion')),
          ...managers.flatMap((body) => versionOf('BMC', textAt(body, 'FirmwareVersion'))),
        ]
      : [],
    complete: reader.complete,
  });
}

class PartReader {
  complete = true;
  stopped: Exclude<BmcResult<never>, { kind: 'ok' }> | undefined;
  readonly #read: Read;

  constructor(read: Read) {
    this.#read = read;
  }

  /** The members of a collection; none when there is no collection. */
  async members(path: string | undefined, countMax = partsMax): Promise<readonly JsonObject[]> {
    if (path === undefined) return [];
    const [collection] = await this.all([path], 1);
    if (collection === undefined) return [];
    return this.all(pathsAt(collection, 'Members'), countMax);
  }

  async all(paths: readonly string[], countMax: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = [];
    if (paths.length > countMax) this.complete = false;
    for (const path of paths.slice(0, countMax)) {
      if (this.stopped !== undefined) return found;
      const part = await this.#read(path);
      if (part.kind === 'ok') found.push(part.value.body);
      else if (part.kind === 'transient') this.stopped = part;
      else this.complete = false;
    }
    return found;
  }
}

/** Sockets also hold accelerators. */
function isProcessor(body: JsonObject): boolean {
  return (textAt(body, 'ProcessorType') ?? 'CPU') === 'CPU' && isThere(body);
}

/** An empty socket or bay is listed as absent. */
function isThere(body: JsonObject): boolean {
  return textAt(objectAt(body, 'Status'), 'State') !== 'Absent';
}

function processorOf(body: JsonObject): BmcProcessor {
  return {
    ...text('manufacturer', textAt(body, 'Manufacturer')),
    ...text('model', textAt(body, 'Model')),
    ...count('cores', numberAt(body, 'TotalCores')),
    ...count('threads', numberAt(body, 'TotalThreads')),
  };
}

function memoryModuleOf(body: JsonObject): readonly BmcMemoryModule[] {
  const capacityMiB = numberAt(body, 'CapacityMiB') ?? 0;
  if (capacityMiB <= 0) return [];
  return [
    {
      capacityMiB,
      ...text('serial', textAt(body, 'SerialNumber')),
      ...text('slot', textAt(body, 'DeviceLocator') ?? textAt(body, 'Name')),
      ...text('manufacturer', textAt(body, 'Manufacturer')),
      ...text('model', textAt(body, 'PartNumber')),
    },
  ];
}

/** The address that is burnt in, which the system sees too. Without one it is no card of ours. */
function interfaceOf(body: JsonObject): readonly BmcInterface[] {
  const mac = textAt(body, 'PermanentMACAddress') ?? textAt(body, 'MACAddress') ?? '';
  const link = textAt(body, 'LinkStatus');
  if (mac === '' || !isThere(body)) return [];
  return [
    {
      mac,
      ...text('name', textAt(body, 'Id') ?? textAt(body, 'Name')),
      ...count('speedMbps', numberAt(body, 'SpeedMbps')),
      ...(link === undefined ? {} : { linkUp: link === 'LinkUp' }),
    },
  ];
}

function versionOf(
  name: BmcFirmwareVersion['name'],
  version: string | undefined,
): readonly BmcFirmwareVersion[] {
  return version === undefined || version === '' ? [] : [{ name, version }];
}

function driveOf(body: JsonObject): BmcDrive {
  return {
    ...text('name', textAt(body, 'Name') ?? textAt(body, 'Id')),
    ...text('manufacturer', textAt(body, 'Manufacturer')),
    ...text('model', textAt(body, 'Model')),
    ...text('serial', textAt(body, 'SerialNumber')),
    ...count('capacityBytes', numberAt(body, 'CapacityBytes')),
    ...text('media', textAt(body, 'MediaType')),
    ...text('protocol', textAt(body, 'Protocol')),
    ...text('firmware', textAt(body, 'Revision')),
  };
}

function text<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });
}

function count<K extends string>(key: K, value: number | undefined): { [P in K]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: number });
}
