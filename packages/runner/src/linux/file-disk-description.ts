/**
 * The description of one file disk, `<name>.json`. Everything has a default but the serial:
 *
 *     { "transport": "virtio", "model": "…", "serial": "…", "wwn": "", "firmware": "1",
 *       "rotational": false, "removable": false, "readOnly": false, "discardSupported": true,
 *       "raidVolume": false, "holders": [], "busyWith": "",
 *       "regions": [{ "name": "nvme0n1", "logicalBlockBytes": 512, "discardGranularity": 0 }],
 *       "nvme": { "formatSupported": true, "cryptoEraseSupported": false,
 *                 "formatsAllNamespaces": false, "deallocatedByte": 0,
 *                 "hiddenNamespaces": [2] },
 *       "faults": [{ "kind": "ioError", "operation": "write", "offset": 0, "length": 4096 },
 *                  { "kind": "lying", "operation": "discard" },
 *                  { "kind": "slow", "operation": "write", "delayMs": 5 }],
 *       "lies": [], "writeCache": "none", "tellsNativeSize": true }
 *
 * A disk with a discardGranularity keeps what does not fill a whole unit of it at its end.
 * Each region's content is `<region>.img` in the same folder; its length is the region's size.
 * A region with `exposedBytes` shows only so much of its content, or more than it has. Lies are
 * those of `file-disk-lies.ts`.
 */
import {
  type CapacityFacts,
  type DeviceFacts,
  type NvmeFacts,
  type Region,
  transports,
  type WriteCache,
} from '@rackwright/erasure';
import {
  asObject,
  flagAt,
  listAt,
  numberAt,
  parseObject,
  type ToolJsonObject,
  textAt,
} from '../machine/json-fields.ts';
import { type Lie, readLie } from './file-disk-lies.ts';

/** Operations that a fault can affect. `write` includes writing zeros. */
export type FaultyOperation = 'read' | 'write' | 'discard' | 'format';

export type FileDiskFault =
  | {
      /** The operation fails when it touches the range. */
      readonly kind: 'ioError';
      readonly operation: FaultyOperation;
      readonly offset: number;
      readonly length: number;
    }
  /** Success is reported and nothing is done. */
  | { readonly kind: 'lying'; readonly operation: FaultyOperation }
  | { readonly kind: 'slow'; readonly operation: FaultyOperation; readonly delayMs: number };

export interface FileDiskDescription {
  readonly facts: DeviceFacts;
  readonly faults: readonly FileDiskFault[];
  readonly lies: readonly Lie[];
  /** The device's reported activity; empty when idle. */
  readonly busyWith: string;
}

const keys = [
  'transport',
  'model',
  'serial',
  'wwn',
  'firmware',
  'rotational',
  'removable',
  'readOnly',
  'discardSupported',
  'raidVolume',
  'holders',
  'busyWith',
  'regions',
  'nvme',
  'faults',
  'lies',
  'writeCache',
  'tellsNativeSize',
];
const writeCaches: readonly WriteCache[] = ['none', 'on', 'off', 'fixedOn'];
const operations: readonly FaultyOperation[] = ['read', 'write', 'discard', 'format'];

/** Reads a description. `sizeOf` answers the length of `<region>.img`. */
export function describeFileDisk(
  name: string,
  text: string,
  sizeOf: (regionName: string) => number,
): FileDiskDescription {
  const source = `${name}.json`;
  const object = parseObject(text, source, keys);
  const regions = readRegions(object, name, source, sizeOf);
  const nvme = object['nvme'] === undefined ? undefined : readNvme(object['nvme'], source);
  const facts: DeviceFacts = {
    name,
    transport: pick(transports, textAt(object, 'transport', 'virtio'), source),
    model: textAt(object, 'model', 'file disk'),
    serial: textAt(object, 'serial', ''),
    wwn: textAt(object, 'wwn', ''),
    firmware: textAt(object, 'firmware', '1'),
    sizeBytes: regions.reduce((sum, region) => sum + region.sizeBytes, 0),
    rotational: flagAt(object, 'rotational', false),
    removable: flagAt(object, 'removable', false),
    readOnly: flagAt(object, 'readOnly', false),
    discardSupported: flagAt(object, 'discardSupported', true),
    raidVolume: flagAt(object, 'raidVolume', false),
    holders: listAt(object, 'holders').map(String),
    regions,
    partitions: [],
    ...(nvme === undefined ? {} : { nvme }),
    writeCache: pick(writeCaches, textAt(object, 'writeCache', 'none'), source),
    capacity: capacityOf(flagAt(object, 'tellsNativeSize', true), regions, sizeOf),
  };
  const faults = listAt(object, 'faults').map((each) => readFault(each, source));
  const lies = listAt(object, 'lies').map((each) => readLie(each, source));
  return { facts, faults, lies, busyWith: textAt(object, 'busyWith', '') };
}

/** The part of a longer content beyond the exposed size is behind a host protected area. */
function capacityOf(
  tells: boolean,
  regions: readonly Region[],
  sizeOf: (regionName: string) => number,
): CapacityFacts {
  if (!tells) return { kind: 'notExamined', reason: 'the file disk does not tell its native size' };
  let [nativeBytes, hostProtectedBytes] = [0, 0];
  for (const { name, sizeBytes } of regions) {
    const native = Math.max(sizeOf(name), sizeBytes);
    nativeBytes += native;
    hostProtectedBytes += native - sizeBytes;
  }
  return { kind: 'examined', nativeBytes, hostProtectedBytes, overlayBytes: 0 };
}

function readRegions(
  object: ToolJsonObject,
  name: string,
  source: string,
  sizeOf: (regionName: string) => number,
): Region[] {
  const described = object['regions'] === undefined ? [{ name }] : listAt(object, 'regions');
  return described.map((each) => {
    const known = ['name', 'logicalBlockBytes', 'discardGranularity', 'exposedBytes'];
    const region = asObject(each, `${source}, regions`, known);
    const regionName = textAt(region, 'name', name);
    const logicalBlockBytes = numberAt(region, 'logicalBlockBytes', 512);
    const discardGranularityBytes = numberAt(region, 'discardGranularity', 0);
    const exposedBytes = numberAt(region, 'exposedBytes', 0);
    return {
      name: regionName,
      sizeBytes: exposedBytes === 0 ? sizeOf(regionName) : exposedBytes,
      logicalBlockBytes,
      ...(discardGranularityBytes === 0 ? {} : { discardGranularityBytes }),
    };
  });
}

function readNvme(value: unknown, source: string): NvmeFacts {
  const known = [
    'formatSupported',
    'cryptoEraseSupported',
    'formatsAllNamespaces',
    'deallocatedByte',
    'hiddenNamespaces',
  ];
  const hiddenNamespaces = listAt(asObject(value, `${source}, nvme`, known), 'hiddenNamespaces');
  const object = asObject(value, `${source}, nvme`, known);
  const byte = object['deallocatedByte'];
  return {
    formatSupported: flagAt(object, 'formatSupported', true),
    cryptoEraseSupported: flagAt(object, 'cryptoEraseSupported', false),
    formatsAllNamespaces: flagAt(object, 'formatsAllNamespaces', false),
    ...(byte === 0x00 || byte === 0xff ? { deallocatedByte: byte } : {}),
    ...(hiddenNamespaces.length === 0 ? {} : { hiddenNamespaces: hiddenNamespaces.map(Number) }),
  };
}

function readFault(value: unknown, source: string): FileDiskFault {
  const known = ['kind', 'operation', 'offset', 'length', 'delayMs'];
  const object = asObject(value, `${source}, faults`, known);
  const kind = pick(['ioError', 'lying', 'slow'] as const, textAt(object, 'kind', ''), source);
  const operation = pick(operations, textAt(object, 'operation', ''), source);
  switch (kind) {
    case 'ioError': {
      const length = numberAt(object, 'length', Number.MAX_SAFE_INTEGER);
      return { kind, operation, offset: numberAt(object, 'offset', 0), length };
    }
    case 'lying':
      return { kind, operation };
    case 'slow':
      return { kind, operation, delayMs: numberAt(object, 'delayMs', 1) };
  }
}

function pick<T extends string>(allowed: readonly T[], text: string, source: string): T {
  const found = allowed.find((each) => each === text);
  if (found === undefined) {
    throw new Error(`${source}: "${text}" must be one of ${allowed.join(', ')}`);
  }
  return found;
}
