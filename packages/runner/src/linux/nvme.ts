/** nvme-cli's facts of a controller and its namespaces, and formatting them. */
import type { CapacityFacts, DeviceFacts, NvmeFacts, WriteCache } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import type { NvmeEraseMode, OwnWork } from '../machine/block-devices.ts';
import { ownWorkOf, parseNvmeSanitize } from './nvme-sanitize.ts';
import { cleanText } from './sys-block.ts';
import { inheritedPath, runTool, runToolForJson, toolOutput, workMsMax } from './tool.ts';

const askTimeoutMs = 30_000;

/**
 * Identify Controller: OACS bit 1 is Format NVM, bit 3 namespace management; FNA bit 1 says that a
 * secure erase reaches all namespaces, bit 2 that there is a cryptographic one.
 */
const formatBit = 1 << 1;
const managementBit = 1 << 3;
const eraseReachesAllBit = 1 << 1;
const cryptoBit = 1 << 2;
/** Identify Namespace: DLFEAT bits 2:0 give the content of deallocated blocks. */
const deallocatedBits = 0b111;
/** Identify Namespace: FPI bit 7 says that bits 6:0, the percentage left to format, count. */
const formatProgressSupported = 1 << 7;

/** A namespace that is held open; tools get its descriptor. */
export interface OpenNamespace {
  /** Kernel name, for words only. */
  readonly name: string;
  readonly descriptor: number;
  readonly sizeBytes: number;
}

/**
 * Facts of a controller; without an answer it offers nothing. `shownIds` are the ids of the
 * namespaces that have a block device.
 */
export async function readNvmeFacts(
  exec: Exec,
  controller: string,
  namespaces: readonly string[],
  shownIds: readonly number[],
): Promise<NvmeFacts> {
  const identity = await ask(exec, ['id-ctrl', `/dev/${controller}`]);
  const unallocatedBytes = writtenNumber(identity?.['unvmcap']);
  const oacs = numberOf(identity, 'oacs');
  const fna = numberOf(identity, 'fna');
  const values = new Set<number>();
  for (const namespace of namespaces) {
    const dlfeat = numberOf(await ask(exec, ['id-ns', `/dev/${namespace}`]), 'dlfeat');
    values.add(dlfeat & deallocatedBits);
  }
  const [value] = values.size === 1 ? values : [];
  const deallocatedByte = value === 1 ? 0x00 : value === 2 ? 0xff : undefined;
  return {
    formatSupported: (oacs & formatBit) !== 0,
    cryptoEraseSupported: (fna & cryptoBit) !== 0,
    formatsAllNamespaces: (fna & eraseReachesAllBit) !== 0,
    ...(deallocatedByte === undefined ? {} : { deallocatedByte }),
    ...(await readHidden(exec, controller, (oacs & managementBit) !== 0, shownIds)),
    ...(Number.isSafeInteger(unallocatedBytes) ? { unallocatedBytes } : {}),
  };
}

/**
 * Namespaces that the controller has and the kernel does not show. One that manages none answers
 * no list, and then has no other namespaces.
 */
async function readHidden(
  exec: Exec,
  controller: string,
  manages: boolean,
  shownIds: readonly number[],
): Promise<Pick<NvmeFacts, 'hiddenNamespaces' | 'namespacesUnlisted'>> {
  const answer = await ask(exec, ['list-ns', `/dev/${controller}`, '--all']);
  const listed: unknown = answer?.['nsid_list'];
  if (!Array.isArray(listed)) return manages ? { namespacesUnlisted: true } : {};
  const ids = listed.map((each: unknown) =>
    typeof each === 'object' && each !== null && 'nsid' in each
      ? writtenNumber(each.nsid)
      : writtenNumber(each),
  );
  const hidden = ids.filter((id) => Number.isSafeInteger(id) && !shownIds.includes(id));
  return hidden.length === 0 ? {} : { hiddenNamespaces: hidden };
}

/** The serial that the controller of an open namespace answers now; undefined without an answer. */
export async function readNvmeSerial(
  exec: Exec,
  namespace: OpenNamespace,
): Promise<string | undefined> {
  const serial = (await askOpen(exec, namespace, ['id-ctrl', inheritedPath(0)]))?.['sn'];
  return typeof serial === 'string' ? cleanText(serial) : undefined;
}

/**
 * Formats each namespace, keeping its LBA format. Forced, because this process holds it
 * exclusively. Rejects with `DeviceError`.
 */
export async function formatNamespaces(
  exec: Exec,
  namespaces: readonly OpenNamespace[],
  mode: NvmeEraseMode,
): Promise<string[]> {
  const setting = mode === 'crypto' ? '2' : '1';
  const lines: string[] = [];
  for (const { descriptor, sizeBytes } of namespaces) {
    // A format with overwriting takes hours on a large device.
    const limitMs = workMsMax(sizeBytes);
    const args = ['format', inheritedPath(0), `--ses=${setting}`, '--force'];
    const timeout = `--timeout=${limitMs}`;
    lines.push(...(await runTool(exec, 'nvme', [...args, timeout], limitMs, [descriptor])));
  }
  return lines;
}

/** A controller's own work; undefined when it is idle or does not report it. */
export async function readNvmeWork(
  exec: Exec,
  namespaces: readonly OpenNamespace[],
): Promise<OwnWork | undefined> {
  const [first] = namespaces;
  if (first === undefined) return undefined;
  const sanitize = await askOpen(exec, first, ['sanitize-log', inheritedPath(0)]);
  const work = ownWorkOf(parseNvmeSanitize(sanitize));
  if (work !== undefined) return work;
  for (const namespace of namespaces) {
    const fpi = numberOf(await askOpen(exec, namespace, ['id-ns', inheritedPath(0)]), 'fpi');
    const left = fpi & ~formatProgressSupported;
    if ((fpi & formatProgressSupported) !== 0 && left > 0) {
      return { kind: 'running', text: `${namespace.name} has ${left} % of a format left` };
    }
  }
  return undefined;
}

/** Identify Controller: VWC bit 0 says that there is a volatile write cache. */
const cacheBit = 1;
/** Features 06h: bit 0 says that it is on (NVMe 2.0 §5.27.1.4). */
const cacheFeature = '6';
/** SANICAP: which kinds of sanitize there are (NVMe 2.0 figure 275). */
const sanitizeCryptoBit = 1;
const sanitizeBlockBit = 2;
const sanitizeOverwriteBit = 4;

/** The controller's report of its cache, its size and its erase commands. */
export async function readNvmeAskedFacts(
  exec: Exec,
  controller: string,
): Promise<Pick<DeviceFacts, 'writeCache' | 'capacity' | 'sanitize'>> {
  const identity = await ask(exec, ['id-ctrl', `/dev/${controller}`]);
  if (identity === undefined) {
    return { capacity: { kind: 'notExamined', reason: 'the controller does not answer' } };
  }
  const writeCache = await readNvmeCache(exec, controller, numberOf(identity, 'vwc'));
  const sanicap = numberOf(identity, 'sanicap');
  return {
    ...(writeCache === undefined ? {} : { writeCache }),
    capacity: nvmeCapacity(writtenNumber(identity['tnvmcap']), writtenNumber(identity['unvmcap'])),
    sanitize: {
      cryptoScramble: (sanicap & sanitizeCryptoBit) !== 0,
      blockErase: (sanicap & sanitizeBlockBit) !== 0,
      overwrite: (sanicap & sanitizeOverwriteBit) !== 0,
      ataSecurityErase: false,
      ataEnhancedErase: false,
    },
  };
}

/** TNVMCAP and UNVMCAP, bytes; nvme-cli prints them as text, and 0 means unreported. */
export function nvmeCapacity(total: number, unallocated: number): CapacityFacts {
  if (total === 0 || !Number.isSafeInteger(total) || !Number.isSafeInteger(unallocated)) {
    return { kind: 'notExamined', reason: 'the controller does not say its total capacity' };
  }
  const hostProtectedBytes = unallocated;
  return { kind: 'examined', nativeBytes: total, hostProtectedBytes, overlayBytes: 0 };
}

/** Every controller that has a cache has the feature; Set Features switches it off. */
async function readNvmeCache(
  exec: Exec,
  controller: string,
  vwc: number,
): Promise<WriteCache | undefined> {
  if ((vwc & cacheBit) === 0) return 'none';
  const args = ['get-feature', `/dev/${controller}`, `--feature-id=${cacheFeature}`];
  return parseCacheFeature(await toolOutput(exec, 'nvme', args, askTimeoutMs));
}

/** `get-feature:0x06 (Volatile Write Cache), Current value:0x00000001` */
export function parseCacheFeature(text: string): WriteCache | undefined {
  const [, value = ''] = /value:\s*(?:0x)?([\da-f]+)\b/i.exec(text) ?? [];
  if (value === '') return undefined;
  return (Number.parseInt(value, 16) & cacheBit) === 0 ? 'off' : 'on';
}

const smartFields = ['critical_warning', 'percent_used', 'media_errors', 'num_err_log_entries'];

/** The controller's SMART log, as far as it speaks of its health and errors. */
export async function readNvmeLog(
  exec: Exec,
  [first]: readonly OpenNamespace[],
): Promise<string[]> {
  if (first === undefined) return [];
  const log = await askOpen(exec, first, ['smart-log', inheritedPath(0)]);
  if (log === undefined) return [];
  return smartFields
    .map((field) => [field, log[field]] as const)
    .filter(([, value]) => typeof value === 'number' || typeof value === 'string')
    .map(([field, value]) => `smart-log ${field}: ${String(value)}`);
}

function ask(exec: Exec, args: readonly string[], descriptors: readonly number[] = []) {
  return runToolForJson(exec, 'nvme', [...args, '--output-format=json'], askTimeoutMs, descriptors);
}

function askOpen(exec: Exec, { descriptor }: OpenNamespace, args: readonly string[]) {
  return ask(exec, args, [descriptor]);
}

/** Large numbers are printed as text. NaN: the value is neither; no other one is converted. */
function writtenNumber(value: unknown): number {
  return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
}

function numberOf(object: Readonly<Record<string, unknown>> | undefined, key: string): number {
  const value = object?.[key];
  return typeof value === 'number' ? value : 0;
}
