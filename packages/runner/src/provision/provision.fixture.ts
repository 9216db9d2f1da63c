/** A disk made of a file, an image in memory, and the shared calls of most tests. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ByteSource, ImageError } from '@rackwright/disk-image';
import { callersHashes, nodeClock } from '@rackwright/platform/node';
import { fileDisks } from '../linux/file-disks.ts';
import { withImageDisk } from '../linux/image-disk.ts';
import type { OpenRegion } from '../machine/block-devices.ts';
import type { ImageDisk } from './disk-writer.ts';
import {
  type ProvisionParts,
  type ProvisionPlan,
  type ProvisionResult,
  provisionDisk,
} from './provision.ts';

export const mib = 1024 * 1024;

/** Content that compresses a little, repeats nowhere, and has holes. */
export function noise(sizeBytes: number, seed = 'seed'): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  let state = createHash('sha256').update(seed).digest();
  for (let at = 0; at < sizeBytes; at += 64) {
    state = createHash('sha256').update(state).digest();
    state.copy(bytes, at);
  }
  return bytes;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Serves bytes from memory. `pieceBytes`: how they are cut. */
export function sourceOf(bytes: Uint8Array, pieceBytes = 64 * 1024): ByteSource {
  return {
    open: async (from) => ({
      start: from,
      chunks: (async function* () {
        for (let at = from; at < bytes.length; at += pieceBytes) {
          yield bytes.subarray(at, at + pieceBytes);
        }
      })(),
      close: () => {},
    }),
  };
}

export interface Change {
  readonly plan?: Partial<ProvisionPlan>;
  readonly image?: Partial<ProvisionPlan['image']>;
  readonly parts?: Partial<ProvisionParts>;
  readonly source?: ByteSource;
  readonly signal?: AbortSignal;
  /** Stands between the writer and the disk. */
  readonly within?: (open: OpenRegion) => OpenRegion;
  readonly progress?: (fraction: number, what: string) => void;
}

/** A folder with one disk, full of a pattern that must not survive where the image is. */
export class TestDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'rackwright-provision-'));
  readonly #sizeBytes: number;

  constructor(sizeBytes = 6 * mib, description: object = {}) {
    this.#sizeBytes = sizeBytes;
    writeFileSync(join(this.folder, 'd.json'), JSON.stringify({ serial: 'S', ...description }));
    this.fill();
  }

  fill(): void {
    writeFileSync(join(this.folder, 'd.img'), Buffer.alloc(this.#sizeBytes, 'PATTERN!'));
  }

  /** Of the same size, as a sparse file. */
  sparse(sizeBytes: number): void {
    truncateSync(join(this.folder, 'd.img'), sizeBytes);
  }

  read(): Buffer {
    return readFileSync(join(this.folder, 'd.img'));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  async provision(file: Uint8Array, change: Change = {}): Promise<ProvisionResult> {
    const devices = fileDisks(this.folder, nodeClock());
    const [device] = (await devices.list()).devices;
    if (device === undefined) throw new Error('no disk');
    const plan = { image: { sha256: sha256(file), ...change.image }, grow: true, ...change.plan };
    const parts: ProvisionParts = {
      unxz: () => {
        throw new ImageError('unsupported', 'no xz here');
      },
      hashes: callersHashes,
      requestBegin: async () => ({ kind: 'granted' }),
      ...change.parts,
    };
    const { signal = new AbortController().signal, within = (open: OpenRegion) => open } = change;
    const { source = sourceOf(file), progress = () => {} } = change;
    const use = (disk: ImageDisk): Promise<ProvisionResult> => {
      const wrapped = { ...disk, open: within(disk.open) };
      return provisionDisk(plan, source, wrapped, progress, signal, parts);
    };
    return await withImageDisk(devices, device, use);
  }
}
