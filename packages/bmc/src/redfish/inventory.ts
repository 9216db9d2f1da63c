/** The parts of a system as its BMC lists them (DSP0268: Processor, Memory, Drive). Bounded. */
import { type BmcResult, ok } from '../driver.ts';
import type { Resource } from './conversation.ts';
import { type JsonObject, numberAt, objectAt, pathOf, pathsAt, textAt } from './json.ts';

export interface BmcProcessor {
  readonly manufacturer?: string;
  readonly model?: string;
  readonly cores?: number;
  readonly threads?: number;
}

export interface BmcMemoryModule {
  readonly capacityMiB: number;
  readonly serial?: string;
}

export interface BmcDrive {
  readonly manufacturer?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly capacityBytes?: number;
  /** "HDD", "SSD" and so on, as the BMC says it. */
  readonly media?: string;
  /** "NVMe", "SATA" and so on. */
  readonly protocol?: string;
}

export interface BmcInventory {
  readonly processors: readonly BmcProcessor[];
  readonly memory: readonly BmcMemoryModule[];
  readonly drives: readonly BmcDrive[];
  /** False: there were more parts than we ask for, or some could not be read. */
  readonly complete: boolean;
}

/** Parts of one kind that are read; each costs a request. */
const partsMax = 64;
const storagesMax = 16;

export type Read = (path: string) => Promise<BmcResult<Resource>>;

/** Reads one part after another; only a BMC that falls silent ends it early. */
export async function readInventory(
  system: Resource,
  read: Read,
): Promise<BmcResult<BmcInventory>> {
  const reader = new PartReader(read);
  const processors = await reader.members(pathIn(system.body, 'Processors'));
  const memory = await reader.members(pathIn(system.body, 'Memory'));
  const storages = await reader.members(pathIn(system.body, 'Storage'), storagesMax);
  const drivePaths = storages.flatMap((storage) => pathsAt(storage, 'Drives'));
  const drives = await reader.all([...new Set(drivePaths)], partsMax);
  if (reader.stopped !== undefined) return reader.stopped;
  return ok({
    processors: processors.filter(isProcessor).map(processorOf),
    memory: memory.flatMap(memoryModuleOf),
    drives: drives.map(driveOf),
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

function pathIn(body: JsonObject, key: string): string | undefined {
  return pathOf(objectAt(body, key));
}

/** Sockets also hold accelerators; an empty one is listed as absent. */
function isProcessor(body: JsonObject): boolean {
  const state = textAt(objectAt(body, 'Status'), 'State');
  return (textAt(body, 'ProcessorType') ?? 'CPU') === 'CPU' && state !== 'Absent';
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
  return [{ capacityMiB, ...text('serial', textAt(body, 'SerialNumber')) }];
}

function driveOf(body: JsonObject): BmcDrive {
  return {
    ...text('manufacturer', textAt(body, 'Manufacturer')),
    ...text('model', textAt(body, 'Model')),
    ...text('serial', textAt(body, 'SerialNumber')),
    ...count('capacityBytes', numberAt(body, 'CapacityBytes')),
    ...text('media', textAt(body, 'MediaType')),
    ...text('protocol', textAt(body, 'Protocol')),
  };
}

function text<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });
}

function count<K extends string>(key: K, value: number | undefined): { [P in K]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: number });
}
