/**
 * Writes tar archives in the form of POSIX.1-1988 ("ustar").
 *
 * 1. The same entries at the same time always give the same bytes: all belongs to root, and the
 *    order is the caller's.
 */

/** Something in the archive. `path` is relative, without "./". */
export type DebianTarEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

const blockBytes = 512;
const nameBytesMax = 100;
const prefixBytesMax = 155;
const checksumAt = 148;
const typeFlag = { file: '0', link: '2', folder: '5' } as const;

/** The archive of `entries`; a folder must precede its content. */
export function tarArchive(entries: readonly DebianTarEntry[], mtimeSeconds: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    const content = entry.kind === 'file' ? entry.bytes : new Uint8Array();
    parts.push(header(entry, content.length, mtimeSeconds), content, padding(content.length));
  }
  parts.push(new Uint8Array(2 * blockBytes));
  return Buffer.concat(parts);
}

/** `entries` with the folders above them, each once, in the order of their names. */
export function withFolders(entries: readonly DebianTarEntry[]): DebianTarEntry[] {
  const all = new Map<string, DebianTarEntry>();
  for (const { path } of entries) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1) {
      const folder = parts.slice(0, depth).join('/');
      all.set(folder, { kind: 'folder', path: folder, mode: 0o755 });
    }
  }
  for (const entry of entries) all.set(entry.path, entry);
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function header(entry: DebianTarEntry, size: number, mtimeSeconds: number): Uint8Array {
  const block = Buffer.alloc(blockBytes);
  const { name, prefix } = splitPath(nameOf(entry));
  const octal = (value: number, at: number, bytes: number): void =>
    void block.write(`${value.toString(8).padStart(bytes - 1, '0')}\0`, at, 'latin1');
  block.write(name, 0, 'utf8');
  octal(entry.kind === 'link' ? 0o777 : entry.mode, 100, 8);
  octal(0, 108, 8); // owner
  octal(0, 116, 8); // group
  octal(size, 124, 12);
  octal(mtimeSeconds, 136, 12);
  block.write('        ', checksumAt, 'latin1');
  block.write(typeFlag[entry.kind], 156, 'latin1');
  if (entry.kind === 'link') block.write(fitting(entry.target, nameBytesMax), 157, 'utf8');
  block.write('ustar\u000000', 257, 'latin1');
  block.write('root', 265, 'latin1');
  block.write('root', 297, 'latin1');
  block.write(prefix, 345, 'utf8');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, checksumAt, 'latin1');
  return block;
}

function splitPath(path: string): { readonly name: string; readonly prefix: string } {
  if (Buffer.byteLength(path) <= nameBytesMax) return { name: path, prefix: '' };
  const at = path.lastIndexOf('/', path.length - 2);
  return {
    name: fitting(path.slice(at + 1), nameBytesMax),
    prefix: fitting(path.slice(0, at), prefixBytesMax),
  };
}

function fitting(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) > bytesMax) throw new Error(`${text} is too long for the archive`);
  return text;
}

function padding(length: number): Uint8Array {
  return new Uint8Array(-length & (blockBytes - 1));
}

/** Names in dpkg's form: from "./", folders with a slash at the end. */
function nameOf({ kind, path }: DebianTarEntry): string {
  if (path === '') return './';
  return `./${path}${kind === 'folder' ? '/' : ''}`;
}
