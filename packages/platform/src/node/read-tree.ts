/** The content of a folder, at any depth: files that a person has laid out to be packed. */
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TreeBounds, TreeEntry } from '../tree.ts';

/**
 * In the order of the paths, so that each folder precedes its content. Follows no link. Rejects
 * when the folder cannot be read, when an entry is neither file, folder nor link, and when there is
 * more than the bounds allow.
 */
export async function nodeReadTree(folder: string, bounds: TreeBounds): Promise<TreeEntry[]> {
  const entries: TreeEntry[] = [];
  let bytes = 0;
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  if (names.length > bounds.entriesMax) {
    throw new Error(`${folder} has more than ${bounds.entriesMax} files and folders`);
  }
  const found = names.map((entry) => {
    return { entry, path: join(entry.parentPath, entry.name).slice(join(folder, '/').length) };
  });
  for (const { entry, path } of found.sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const at = join(folder, path);
    if (entry.isDirectory()) entries.push({ kind: 'folder', path });
    else if (entry.isSymbolicLink())
      entries.push({ kind: 'link', path, target: await readlink(at) });
    else if (entry.isFile()) {
      const { mode, size } = await stat(at);
      bytes += size;
      if (bytes > bounds.bytesMax) {
        throw new Error(`${folder} has more than ${bounds.bytesMax} bytes of files`);
      }
      entries.push({ kind: 'file', path, mode: mode & 0o777, bytes: await readFile(at) });
    } else throw new Error(`${at} is neither a file nor a folder nor a link`);
  }
  return entries;
}
