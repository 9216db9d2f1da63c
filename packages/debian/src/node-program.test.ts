import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RamdiskArchitecture } from '@rackwright/runner/ramdisk';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nodeProgram } from './node-program.ts';

const root = join(import.meta.dirname, '../../..');
const own: RamdiskArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'node-program-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test('the build packs no Node that could not be stripped, and says what is missing', async () => {
  vi.stubEnv('PATH', folder);
  await expect(nodeProgram(root, folder, own)).rejects.toThrow(
    new RegExp(`^Node for ${own} cannot be stripped \\(.*ENOENT\\): install strip `),
  );
  expect(readdirSync(folder)).toEqual([]);
});
