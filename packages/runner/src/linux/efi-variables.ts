/**
 * The variables of UEFI firmware, as Linux shows them: one file each, four bytes of attributes and
 * the content. The kernel lets boot entries and their order be written like any file.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EfiVariables, VariableWrite } from '@rackwright/disk-image';
import { type Exec, errorText, isAbsent } from '@rackwright/platform';
import { DeviceError } from '../machine/block-devices.ts';
import { runTool } from './tool.ts';

/** The place of their mount; nothing there: the host was not started by UEFI. */
export const efiVariablesFolder = '/sys/firmware/efi/efivars';

const globalVendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c';
/** Kept without power, seen by the firmware at boot and by the system. */
const attributes = Uint8Array.of(7, 0, 0, 0);
const wanted = /^(Boot[0-9A-F]{4}|BootOrder)-(.*)$/;
const variablesMax = 4_096;
const mountTimeoutMs = 30_000;

/** Mounts them unless they are. Rejects with `DeviceError` when there are none. */
export async function mountEfiVariables(exec: Exec, folder = efiVariablesFolder): Promise<void> {
  if ((await namesIn(folder)).length > 0) return;
  // The kernel asks for /sbin/modprobe, which a ramdisk need not have. Built in: the mount tells.
  await runTool(exec, 'modprobe', ['-q', 'efivarfs'], mountTimeoutMs).catch(() => undefined);
  await runTool(exec, 'mount', ['-t', 'efivarfs', 'efivarfs', folder], mountTimeoutMs);
}

/** Boot entries and their order. Rejects with `DeviceError`. */
export async function readEfiVariables(folder = efiVariablesFolder): Promise<EfiVariables> {
  const variables = new Map<string, Uint8Array>();
  for (const file of (await namesIn(folder)).slice(0, variablesMax)) {
    const [, name, vendor] = wanted.exec(file) ?? [];
    if (name === undefined || vendor !== globalVendor) continue;
    const bytes = await attempt(`read of ${name}`, () => readFile(join(folder, file)));
    variables.set(name, new Uint8Array(bytes.subarray(attributes.length)));
  }
  return variables;
}

/** Writes each and reads it back. Rejects with `DeviceError`. */
export async function writeEfiVariables(
  writes: readonly VariableWrite[],
  folder = efiVariablesFolder,
): Promise<void> {
  for (const { name, content } of writes) {
    const path = join(folder, `${name}-${globalVendor}`);
    const whole = Buffer.concat([attributes, content]);
    // The firmware gets it in one piece: one call.
    await attempt(`write of ${name}`, () => writeFile(path, whole));
    const found = await attempt(`read of ${name}`, () => readFile(path));
    if (!found.equals(whole)) throw new DeviceError(`UEFI variable ${name} is not read back`);
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).toSorted();
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new DeviceError(`UEFI variables: ${errorText(error)}`, { cause: error });
  }
}

async function attempt<T>(action: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    const text = errorText(cause);
    throw new DeviceError(`UEFI variables: ${action}: ${text}`, { cause });
  }
}
