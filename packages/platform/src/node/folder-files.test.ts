import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeFolderFiles } from './folder-files.ts';

const wide = { filesMax: 10, bytesMax: 100 };
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-files-'));
});

afterEach(() => rm(folder, { recursive: true }));

test('files are known by their paths, and links are none of them', async () => {
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), 'a');
  await writeFile(join(folder, 'assets/b.js'), 'b');
  await symlink('/etc/passwd', join(folder, 'link'));
  const files = await nodeFolderFiles(folder, wide);
  expect([...files].map(([path, bytes]) => [path, String(bytes)])).toEqual([
    ['assets/b.js', 'b'],
    ['index.html', 'a'],
  ]);
});

test('a folder that is not there has none', async () => {
  expect((await nodeFolderFiles(join(folder, 'none'), wide)).size).toBe(0);
});

test('more or larger ones than allowed are refused', async () => {
  await writeFile(join(folder, 'a'), 'x'.repeat(60));
  await writeFile(join(folder, 'b'), 'x'.repeat(60));
  await expect(nodeFolderFiles(folder, wide)).rejects.toThrow('more than 10 files or 100 bytes');
  await expect(nodeFolderFiles(folder, { filesMax: 1, bytesMax: 1_000 })).rejects.toThrow();
});
