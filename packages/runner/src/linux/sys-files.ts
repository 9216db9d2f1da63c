/**
 * Small files and folders of /sys and /proc: a missing one reads as empty.
 *
 * Y1 A folder or a link that exists and cannot be read rejects. A list of a host's storage must not
 *    mistake it for one without devices.
 * Y2 A file that the kernel or the device refuses reads as empty: many attributes exist and have no
 *    value. A lack of descriptors or memory says nothing about the file, and rejects.
 */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';

/** Errors of a missing file, or of a device or process that has gone meanwhile. */
const missing = new Set(['ENOENT', 'ENOTDIR', 'ENODEV', 'ENXIO', 'ESRCH']);
/** Errors of a lack of descriptors or memory. */
const ownLacks = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

/** Whether the error says that the file does not exist. */
export function isMissing(error: unknown): boolean {
  return missing.has(codeOf(error));
}

/** Whether this process could not even ask (Y2). */
export function isOwnLack(error: unknown): boolean {
  return ownLacks.has(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** The trimmed content; empty when the file does not exist or has nothing to read (Y2). */
export async function readText(...path: readonly string[]): Promise<string> {
  return new TextDecoder().decode(await readBytes(...path)).trim();
}

export async function readBytes(...path: readonly string[]): Promise<Uint8Array> {
  try {
    return new Uint8Array(await readFile(join(...path)));
  } catch (error) {
    if (isOwnLack(error)) throw error;
    return new Uint8Array();
  }
}

/** A whole number, or 0. */
export async function readNumber(...path: readonly string[]): Promise<number> {
  const text = await readText(...path);
  return /^\d+$/.test(text) ? Number(text) : 0;
}

/** Names in a folder, sorted; empty when it does not exist (Y1). */
export async function namesIn(...path: readonly string[]): Promise<string[]> {
  try {
    return (await readdir(join(...path))).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** The target of a link; empty when it does not exist (Y1). */
export async function resolvePath(...path: readonly string[]): Promise<string> {
  try {
    return await realpath(join(...path));
  } catch (error) {
    if (isMissing(error)) return '';
    throw error;
  }
}
