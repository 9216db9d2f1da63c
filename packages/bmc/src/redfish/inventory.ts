/**
 * The parts of a system as its BMC lists them (DSP0268: Processor, Memory, Drive, EthernetInterface
 * completed by network adapters, and the versions in ComputerSystem and Manager). Bounded.
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
import { adapterInterfaces, merged } from './network-adapters.ts';
import { isThere, PartReader, partsMax, type ResourceReader } from './part-reader.ts';

const storagesMax = 16;
/** Adapters are many resources each; they come last, and earlier reads count against this. */
const adapterRequestsMax = 128;

/**
 * Reads the wanted parts, one after another; the lists of other parts stay empty. Only a BMC that
 * falls silent ends it early.
 */
export async function readInventory(
  system: Resource,
  read: ResourceReader,
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
  const beside = new PartReader(read, adapterRequestsMax);
  const ofAdapters = wanted.includes('interfaces')
    ? await adapterInterfaces(system.body, beside)
    : [];
  return ok({
    processors: processors.filter(isProcessor).map(processorOf),
    memory: memory.flatMap(memoryModuleOf),
    drives: drives.filter(isThere).map(driveOf),
    interfaces: merged(interfaces.flatMap(interfaceOf), ofAdapters),
    firmware: wanted.includes('firmware')
      ? [
          ...versionOf('BIOS', textAt(system.body, 'BiosVersion')),
          ...managers.flatMap((body) => versionOf('BMC', textAt(body, 'FirmwareVersion'))),
        ]
      : [],
    complete: reader.complete && beside.complete && beside.stopped === undefined,
  });
}

/** Sockets also hold accelerators. */
function isProcessor(body: JsonObject): boolean {
  return (textAt(body, 'ProcessorType') ?? 'CPU') === 'CPU' && isThere(body);
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
