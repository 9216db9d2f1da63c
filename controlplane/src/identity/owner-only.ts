/**
 * Files that only their owner may read: private keys, hashes of tokens.
 *
 * Invariants:
 * 1. A private file is created with mode 0600 in a folder of mode 0700.
 * 2. A private file or folder that others can access is not used: the start is refused with the
 *    command that repairs it. A silent repair would hide that the secret may have leaked.
 */
import type { Disk } from '@rackwright/platform';

/** Why the identity cannot be used; the message names the file and a remedy. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError';
}

const fileMode = 0o600;
const publicFileMode = 0o644;
const folderMode = 0o700;
/** Any of these bits gives others access. */
const othersBits = 0o077;

/** One folder of identity files. */
export interface IdentityFolder {
  readonly disk: Disk;
  readonly path: string;
}

/** Opens the folder, creating it if needed (invariants 1 and 2). Throws `IdentityError`. */
export async function openFolder(disk: Disk, path: string): Promise<IdentityFolder> {
  const found = await disk.stat(path);
  if (found === undefined) await disk.makeFolder(path, folderMode);
  else refuseOthers(path, found.mode, folderMode);
  return { disk, path };
}

/** Text of a private file; undefined when it does not exist. Throws `IdentityError`. */
export async function readPrivate(
  folder: IdentityFolder,
  name: string,
): Promise<string | undefined> {
  const path = pathOf(folder, name);
  const found = await folder.disk.stat(path);
  if (found === undefined) return undefined;
  refuseOthers(path, found.mode, fileMode);
  return readText(folder, name);
}

/** Text of a file that anybody may read; undefined when it does not exist. */
export async function readText(folder: IdentityFolder, name: string): Promise<string | undefined> {
  const bytes = await folder.disk.read(pathOf(folder, name));
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

/** Writes a private file (invariant 1). */
export function writePrivate(folder: IdentityFolder, name: string, text: string): Promise<void> {
  return write(folder, name, text, fileMode);
}

/** Writes a file that anybody may read: certificates and public keys. */
export function writePublic(folder: IdentityFolder, name: string, text: string): Promise<void> {
  return write(folder, name, text, publicFileMode);
}

/** The file's path, for messages. */
export function pathOf(folder: IdentityFolder, name: string): string {
  return `${folder.path}/${name}`;
}

function write(folder: IdentityFolder, name: string, text: string, mode: number): Promise<void> {
  return folder.disk.writeAtomic(pathOf(folder, name), new TextEncoder().encode(text), mode);
}

function refuseOthers(path: string, mode: number, wanted: number): void {
  if ((mode & othersBits) === 0) return;
  const now = (mode & 0o777).toString(8);
  throw new IdentityError(
    `${path} is open to others (mode ${now}), so its secrets may be known to them. ` +
      `If they are not, run: chmod ${wanted.toString(8)} ${path}`,
  );
}
