import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeReadTree } from './read-tree.ts';

const bounds = { entriesMax: 5, bytesMax: 10 };
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-tree-'));
});

afterEach(() => rm(folder, { recursive: true }));

test('files, folders and links come in order, folders before what is in them', async () => {
  await mkdir(join(folder, 'lib/firmware'), { recursive: true });
  await writeFile(join(folder, 'lib/firmware/a.bin'), 'abc');
  await chmod(join(folder, 'lib/firmware/a.bin'), 0o640);
  await symlink('a.bin', join(folder, 'lib/firmware/b.bin'));
  await symlink('/nowhere', join(folder, 'lib.link'));
  for (const spelling of [folder, `${folder}/`]) {
    expect(await nodeReadTree(spelling, bounds)).toEqual([
      { kind: 'folder', path: 'lib' },
      { kind: 'link', path: 'lib.link', target: '/nowhere' },
      { kind: 'folder', path: 'lib/firmware' },
      { kind: 'file', path: 'lib/firmware/a.bin', mode: 0o640, bytes: Buffer.from('abc') },
      { kind: 'link', path: 'lib/firmware/b.bin', target: 'a.bin' },
    ]);
  }
});

test('too much, something else, and no folder are refused', async () => {
  await expect(nodeReadTree(join(folder, 'none'), bounds)).rejects.toThrow('ENOENT');
  await writeFile(join(folder, 'a'), '12345678901');
  await expect(nodeReadTree(folder, bounds)).rejects.toThrow('more than 10 bytes');
  await rm(join(folder, 'a'));
  execFileSync('mkfifo', [join(folder, 'p')]);
  await expect(nodeReadTree(folder, bounds)).rejects.toThrow('neither a file');
  await Promise.all(['1', '2', '3', '4', '5'].map((name) => mkdir(join(folder, name))));
  await expect(nodeReadTree(folder, bounds)).rejects.toThrow('more than 5 files');
});
