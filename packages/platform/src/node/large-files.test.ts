import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeLargeFiles } from './large-files.ts';

const files = nodeLargeFiles();
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-large-'));
});

afterEach(() => rm(folder, { recursive: true }));

async function contentsOf(path: string): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of files.read(path)) parts.push(part);
  return Buffer.concat(parts).toString();
}

test('a partial file continues where it ended, and gets its final name', async () => {
  const path = join(folder, 'a.part');
  const first = await files.openPart(path);
  expect(first.sizeBytes).toBe(0);
  await first.write(Buffer.from('one '));
  await first.close();
  const second = await files.openPart(path);
  expect(second.sizeBytes).toBe(4);
  await second.write(Buffer.from('two'));
  await second.sync();
  await second.close();
  await files.rename(path, join(folder, 'a'));
  await files.touch(join(folder, 'a'), 5_000);
  expect(await files.list(folder)).toEqual([{ name: 'a', sizeBytes: 7, usedAtMs: 5_000 }]);
  expect(await contentsOf(join(folder, 'a'))).toBe('one two');
});

test('a partial file can begin again', async () => {
  const path = join(folder, 'a.part');
  const part = await files.openPart(path);
  await part.write(Buffer.from('wrong'));
  await part.empty();
  await part.write(Buffer.from('right'));
  await part.close();
  expect(await contentsOf(path)).toBe('right');
});

test('a missing file can be removed, and a missing folder listed', async () => {
  const path = join(folder, 'a');
  await (await files.openPart(path)).close();
  await files.remove(path);
  await files.remove(path);
  expect(await files.list(folder)).toEqual([]);
  expect(await files.list(join(folder, 'missing'))).toEqual([]);
  await expect(contentsOf(path)).rejects.toThrow('ENOENT');
});

test('a partial file is created only if no file has its name', async () => {
  const path = join(folder, 'a.part');
  const part = await files.createPart(path);
  await part.write(Buffer.from('one'));
  await part.close();
  await expect(files.createPart(path)).rejects.toThrow('EEXIST');
  expect(await contentsOf(path)).toBe('one');
});

test('a file gets a second name only if that is free, and is recognized by it', async () => {
  const [one, other] = [join(folder, 'one'), join(folder, 'other')];
  for (const path of [one, other]) await (await files.createPart(path)).close();
  await expect(files.link(one, other)).rejects.toThrow('EEXIST');
  expect(await files.isSame(one, other)).toBe(false);
  await files.link(one, join(folder, 'two'));
  expect(await files.isSame(one, join(folder, 'two'))).toBe(true);
  expect(await files.isSame(one, join(folder, 'none'))).toBe(false);
  expect(await files.isSame(join(folder, 'none'), join(folder, 'none'))).toBe(false);
});

test('a listing has folders too, and one is removed with all that is in it', async () => {
  await mkdir(join(folder, 'sub/deep'), { recursive: true });
  await (await files.createPart(join(folder, 'a'))).close();
  expect([...(await files.names(folder))].sort()).toEqual(['a', 'sub']);
  await files.removeFolder(join(folder, 'sub'));
  await files.removeFolder(join(folder, 'sub'));
  await files.removeFolder(join(folder, 'none/deeper'));
  expect(await files.names(folder)).toEqual(['a']);
  expect(await files.names(join(folder, 'none'))).toEqual([]);
});

test('the disk reports how many bytes its file system takes', async () => {
  expect(await files.freeBytes(folder)).toBeGreaterThan(0);
  await expect(files.freeBytes(join(folder, 'none'))).rejects.toThrow('ENOENT');
});
