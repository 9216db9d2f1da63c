/**
 * The site's additions to the ramdisk: firmware of network cards, drivers. A second archive behind
 * that of the ramdisk, which the kernel unpacks in order (Linux
 * Documentation/driver-api/early-userspace/buffer-format.rst).
 *
 * V1 It is made anew at each start, so that the served archive equals the folder. Where that
 *    changes nothing, the file stays untouched.
 * V2 It brings firmware and drivers only. So nothing of the runner's is replaced: not its program,
 *    and not the programs and libraries that erase.
 */
import { createHash } from 'node:crypto';
import { type CpioEntry, cpioArchive, foldersAbove } from '@rackwright/disk-image';
import {
  ConfigError,
  type Disk,
  type Log,
  type TreeBounds,
  type TreeEntry,
} from '@rackwright/platform';
import type { AgentConfig } from './config.ts';

export const overlayBounds: TreeBounds = { entriesMax: 20_000, bytesMax: 128 * 1024 * 1024 };

export interface OverlayParts {
  readonly disk: Pick<Disk, 'read' | 'writeAtomic' | 'makeFolder'>;
  readonly log: Log;
  readTree(folder: string, bounds: TreeBounds): Promise<readonly TreeEntry[]>;
}

type Overlaid = Pick<AgentConfig, 'files' | 'runner' | 'stateFolder'>;

/**
 * The configuration with the ramdisk that hosts get, which is written below the state folder.
 * Throws when it cannot be written.
 */
export async function withOverlay<T extends Overlaid>(
  config: T,
  { disk, log, readTree }: OverlayParts,
): Promise<T> {
  const { runner, stateFolder, files } = config;
  const { overlay } = runner;
  const given = files.find(({ name }) => name === runner.initrd)?.path;
  if (overlay === undefined || given === undefined) return config;
  const initrd = await disk.read(given);
  if (initrd === undefined) throw new Error(`there is no ramdisk at ${given}`);
  const tree = await readTree(overlay, overlayBounds).catch((cause: unknown) => {
    throw new Error('runner.overlay cannot be read', { cause });
  });
  const bytes = extendedInitrd(initrd, tree);
  const path = `${stateFolder}/initrd-with-overlay`;
  const before = await disk.read(path);
  if (before === undefined || Buffer.compare(before, bytes) !== 0) {
    await disk.makeFolder(stateFolder, 0o700);
    await disk.writeAtomic(path, bytes, 0o600);
  }
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  log.info({ path, sha256, bytes: bytes.length, entries: tree.length }, 'ramdisk with its overlay');
  const served = files.map((one) => (one.name === runner.initrd ? { ...one, path } : one));
  return { ...config, files: served };
}

/** The ramdisk, and behind it the archive of the tree, where the kernel looks for one. */
export function extendedInitrd(initrd: Uint8Array, tree: readonly TreeEntry[]): Uint8Array {
  return Buffer.concat([initrd, new Uint8Array(-initrd.length & 3), cpioArchive(entriesOf(tree))]);
}

/** Debian puts these below /usr; the kernel of the ramdisk looks for them here alone. */
const moved = /^usr\/(?=lib\/(firmware|modprobe\.d|modules)(\/|$))/;
/** V2: documents of packages do no harm. */
const allowed = /^(lib\/(firmware|modprobe\.d|modules)|etc\/modprobe\.d|usr\/share)(\/|$)/;

function entriesOf(tree: readonly TreeEntry[]): CpioEntry[] {
  const files = new Map<string, CpioEntry>();
  for (const entry of tree) {
    const path = entry.path.replace(moved, '');
    if (entry.kind === 'folder') continue;
    if (!allowed.test(path)) {
      const text =
        `has to be a folder without ${path}; it may hold lib/firmware, lib/modules, ` +
        'lib/modprobe.d, etc/modprobe.d and usr/share';
      throw new ConfigError({ key: 'runner.overlay', text });
    }
    if (files.has(path)) {
      const text = `has to be a folder with one ${path}; it has it twice`;
      throw new ConfigError({ key: 'runner.overlay', text });
    }
    files.set(path, { ...entry, path });
  }
  const paths = [...files.keys()].sort();
  return [...foldersAbove(paths), ...paths.flatMap((path) => files.get(path) ?? [])];
}
