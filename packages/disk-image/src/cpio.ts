/**
 * Writes the archive format that the kernel unpacks at boot ("newc", Linux
 * Documentation/driver-api/early-userspace/buffer-format.rst).
 *
 * 1. The same entries always give the same bytes: inode numbers count up, times are zero, all
 *    belongs to 0:0. So the build needs no root, and equal content is recognised by its hash.
 */

/** Something in the archive. `path` is relative, without "./"; `mode` holds the permission bits. */
export type CpioEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | {
      readonly kind: 'characterDevice';
      readonly path: string;
      readonly mode: number;
      readonly major: number;
      readonly minor: number;
    };

const MAGIC = '070701';
const TRAILER = 'TRAILER!!!';
const BLOCK_BYTES = 512;
const FILE_TYPE = { folder: 0o040000, file: 0o100000, link: 0o120000, characterDevice: 0o020000 };

/** The archive of `entries`, in their order. A folder must precede its content. */
export function cpioArchive(entries: readonly CpioEntry[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let length = 0;
  const push = (bytes: Uint8Array): void => {
    parts.push(bytes, new Uint8Array(-bytes.length & 3));
    length += bytes.length + (-bytes.length & 3);
  };
  for (const [index, entry] of entries.entries()) {
    if (!/^[^/]/.test(entry.path) || entry.path.includes('\0')) {
      throw new Error(`the archive path ${JSON.stringify(entry.path)} must be relative`);
    }
    const content = contentOf(entry);
    push(header(entry, index + 1, content.length));
    push(content);
  }
  push(header({ kind: 'file', path: TRAILER, mode: 0, bytes: new Uint8Array() }, 0, 0));
  parts.push(new Uint8Array(-length & (BLOCK_BYTES - 1)));
  return Buffer.concat(parts);
}

/** Entries for the folders above `paths`, each once and outermost first, mode 755. */
export function foldersAbove(paths: readonly string[]): CpioEntry[] {
  const folders = new Set<string>();
  for (const path of paths) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1)
      folders.add(parts.slice(0, depth).join('/'));
  }
  return [...folders].sort().map((path) => ({ kind: 'folder', path, mode: 0o755 }));
}

function contentOf(entry: CpioEntry): Uint8Array {
  if (entry.kind === 'file') return entry.bytes;
  return entry.kind === 'link' ? Buffer.from(entry.target) : new Uint8Array();
}

function header(entry: CpioEntry, inode: number, contentBytes: number): Uint8Array {
  const name = Buffer.from(`${entry.path}\0`);
  const isDevice = entry.kind === 'characterDevice';
  const permissions = entry.kind === 'link' ? 0o777 : entry.mode;
  const fields = [
    inode,
    inode === 0 ? 0 : FILE_TYPE[entry.kind] | permissions,
    0, // owner
    0, // group
    entry.kind === 'folder' ? 2 : 1, // links
    0, // time of change
    contentBytes,
    0, // device that holds the file
    0,
    isDevice ? entry.major : 0,
    isDevice ? entry.minor : 0,
    name.length,
    0, // checksum: not used by this form
  ];
  const text = MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return Buffer.concat([Buffer.from(text), name]);
}
