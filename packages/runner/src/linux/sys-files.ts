/** Small files and folders of /sys and /proc: a missing one reads as empty. */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';

/** The trimmed content; empty when the file does not exist or cannot be read. */
export async function readText(...path: readonly string[]): Promise<string> {
  return new TextDecoder().decode(await readBytes(...path)).trim();
}

export async function readBytes(...path: readonly string[]): Promise<Uint8Array> {
  try {
    return new Uint8Array(await readFile(join(...path)));
  } catch {
    return new Uint8Array();
  }
}

/** A whole number, or 0. */
export async function readNumber(...path: readonly string[]): Promise<number> {
  const text = await readText(...path);
  return /^\d+$/.test(text) ? Number(text) : 0;
}

/** Names in a folder, sorted; empty when it does not exist. */
export async function namesIn(...path: readonly string[]): Promise<string[]> {
  try {
    return (await readdir(join(...path))).sort();
  } catch {
    return [];
  }
}

/** The target of a link; empty when it does not exist. */
export async function resolvePath(...path: readonly string[]): Promise<string> {
  try {
    return await realpath(join(...path));
  } catch {
    return '';
  }
}
