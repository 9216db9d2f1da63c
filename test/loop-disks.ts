/**
 * Loop devices that a runner takes for the disks of its machine: production code, real block
 * devices, and a folder that stands for /sys, /proc and /dev and shows nothing else. Needs root.
 */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { nodeExec } from '@rackwright/platform/node';
import { type BlockDevices, linuxDevices } from '@rackwright/runner';

export interface LoopDisk {
  /** As the runner sees it, like `vda`. */
  readonly name: string;
  /** Of the loop device. */
  readonly path: string;
  /** What the device shows. */
  readonly file: string;
}

/** What the kernel tells of a disk and changes with it. */
const live = ['size', 'diskseq', 'dev', 'ro', 'queue'] as const;

export class LoopDisks {
  readonly folder: string;
  readonly disks: LoopDisk[] = [];
  readonly #direct: 'direct' | 'cached';

  /**
   * `place` is a folder with room for the disks. `direct` keeps the page cache out of what is read
   * and written; a file system in memory refuses that.
   */
  constructor(place: string, direct: 'direct' | 'cached' = 'cached') {
    this.#direct = direct;
    this.folder = mkdtempSync(join(place, 'rackwright-loops-'));
    for (const each of ['sys/block', 'sys/dev/block', 'proc/self', 'dev']) {
      mkdirSync(join(this.folder, each), { recursive: true });
    }
    writeFileSync(join(this.folder, 'proc/self/mountinfo'), '');
    writeFileSync(join(this.folder, 'proc/swaps'), 'Filename\n');
  }

  /** Attaches a new file of zeros, which may have holes. */
  add(sizeBytes: number): LoopDisk {
    const index = this.disks.length;
    const name = `vd${String.fromCharCode('a'.charCodeAt(0) + index)}`;
    const file = join(this.folder, `${name}.img`);
    writeFileSync(file, '');
    truncateSync(file, sizeBytes);
    const direct = this.#direct === 'direct' ? ['--direct-io=on'] : [];
    const path = run('losetup', ['--find', '--show', ...direct, file]);
    const disk = { name, path, file };
    this.disks.push(disk);
    this.#describe(disk, index);
    return disk;
  }

  /** The runner's view of them. */
  devices(): BlockDevices {
    return devicesIn(this.folder);
  }

  /** Detaches those that are still ours: one that was detached before may be another test's now. */
  remove(): void {
    for (const { path } of this.disks) {
      if (isOver(path, this.folder)) run('losetup', ['--detach', path]);
    }
    rmSync(this.folder, { recursive: true });
  }

  #describe({ name, path }: LoopDisk, index: number): void {
    const real = join('/sys/block', basename(path));
    const place = join(this.folder, `sys/devices/pci0000:00/virtio${index}/block/${name}`);
    mkdirSync(place, { recursive: true });
    for (const each of live) symlinkSync(join(real, each), join(place, each));
    writeFileSync(join(place, 'serial'), `LOOP-${name}`);
    symlinkSync(place, join(this.folder, 'sys/block', name));
    const number = run('cat', [join(real, 'dev')]);
    symlinkSync(place, join(this.folder, 'sys/dev/block', number));
    symlinkSync(path, join(this.folder, 'dev', name));
  }
}

/** Whether a loop device shows a file in this folder. */
function isOver(path: string, folder: string): boolean {
  try {
    const shown = readFileSync(join('/sys/block', basename(path), 'loop/backing_file'), 'utf8');
    return shown.startsWith(`${folder}/`);
  } catch {
    // It is not attached.
    return false;
  }
}

/** The runner's view of the loop devices that were added in `folder`, in any process. */
export function devicesIn(folder: string): BlockDevices {
  const roots = { sys: join(folder, 'sys'), proc: join(folder, 'proc'), dev: join(folder, 'dev') };
  return linuxDevices(nodeExec(undefined, 'ours'), roots);
}

function run(file: string, args: readonly string[]): string {
  return execFileSync(file, args, { encoding: 'utf8', stdio: 'pipe' }).trim();
}

/** Why no loop device can be made here; undefined when one can. */
export function noLoops(place: string): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const loops = new LoopDisks(place);
  try {
    loops.add(1024 * 1024);
    return undefined;
  } catch {
    return 'no loop device can be made here';
  } finally {
    loops.remove();
  }
}
