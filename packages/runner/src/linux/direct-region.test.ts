/** Short reads, with O_DIRECT of this machine: a file that was cut. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Exec } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DeviceError } from '../machine/block-devices.ts';
import { transferMemory } from '../machine/transfer-memory.ts';
import { type DirectRegion, openDirect } from './direct-region.ts';

const blockBytes = 4096;
const noTools: Exec = {
  run: () => Promise.reject(new Error('no tool is run here')),
} as Partial<Exec> as Exec;

let folder = '';
let region: DirectRegion | undefined;
let path = '';

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-short-'));
  path = join(folder, 'disk');
  writeFileSync(path, new Uint8Array(4 * blockBytes));
  region = await openDirect(path, noTools).catch((error: unknown) => {
    if (error instanceof DeviceError && error.message.includes('EINVAL')) return undefined;
    throw error;
  });
});

afterEach(async () => {
  await region?.close();
  rmSync(folder, { recursive: true });
});

test.for([0, 512, blockBytes - 512])(
  'a read of which only %i bytes come is refused: what is in its memory is older',
  async (bytes, context) => {
    if (region === undefined) return context.skip('this file system has no O_DIRECT');
    // Zeros, which would be taken for an erased disk.
    await region.read(2 * blockBytes, blockBytes);
    truncateSync(path, 2 * blockBytes + bytes);
    const text = `only ${bytes} bytes came`;
    await expect(region.read(2 * blockBytes, blockBytes)).rejects.toThrow(text);
    const [target = new Uint8Array()] = transferMemory(1);
    const into = region.readInto(2 * blockBytes, target.subarray(0, blockBytes));
    await expect(into).rejects.toThrow(text);
    await expect(into).rejects.toMatchObject({ operation: 'read' });
  },
);
