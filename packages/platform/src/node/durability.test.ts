/** Durable data survives a power cut: the promises D1, D2 and L1, on a disk that forgets. */
import { expect, test } from 'vitest';
import { ForgetfulFiles } from '../testing/index.ts';
import { nodeDisk } from './disk.ts';
import { nodeLargeFiles } from './large-files.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const path = '/state/key';

test('D1: a replaced file has its new contents after a power cut', async () => {
  const files = new ForgetfulFiles();
  const disk = nodeDisk(files);
  for (const text of ['first', 'second']) {
    await disk.writeAtomic(path, bytesOf(text), 0o600);
    files.cutPower();
    expect(await disk.read(path)).toEqual(bytesOf(text));
  }
});

test('D1: a power cut at any moment leaves the old contents or the new', async () => {
  for (let cutAfter = 0; cutAfter < 10; cutAfter += 1) {
    const files = new ForgetfulFiles();
    await nodeDisk(files).writeAtomic(path, bytesOf('old'), 0o600);
    files.dieAfter(cutAfter);
    await nodeDisk(files)
      .writeAtomic(path, bytesOf('new'), 0o600)
      .catch(() => {});
    files.cutPower();
    const found = new TextDecoder().decode(await nodeDisk(files).read(path));
    expect(['old', 'new'], `after ${cutAfter} calls`).toContain(found);
  }
});

test('D2: an append that has resolved is there after a power cut, and so is its file', async () => {
  const files = new ForgetfulFiles();
  const disk = nodeDisk(files);
  const journal = await disk.openAppend(path);
  await journal.append(bytesOf('a'));
  files.cutPower();
  expect(await disk.read(path)).toEqual(bytesOf('a'));
  const again = await disk.openAppend(path);
  await again.append(bytesOf('b'));
  files.cutPower();
  expect(await disk.read(path)).toEqual(bytesOf('ab'));
});

test('a removed file stays removed after a power cut', async () => {
  const files = new ForgetfulFiles();
  const disk = nodeDisk(files);
  await disk.writeAtomic(path, bytesOf('x'), 0o600);
  await disk.remove(path);
  files.cutPower();
  expect(await disk.read(path)).toBeUndefined();
});

test('L1: a large file has its whole contents under its final name after a power cut', async () => {
  const files = new ForgetfulFiles();
  const large = nodeLargeFiles(files);
  const part = await large.createPart('/cache/blob.part');
  for (const piece of ['one ', 'two']) await part.write(bytesOf(piece));
  await part.sync();
  await part.close();
  await large.rename('/cache/blob.part', '/cache/blob');
  files.cutPower();
  expect(await nodeDisk(files).read('/cache/blob')).toEqual(bytesOf('one two'));
  await large.link('/cache/blob', '/cache/other');
  files.cutPower();
  for (const name of ['/cache/blob', '/cache/other']) {
    expect(await nodeDisk(files).read(name)).toEqual(bytesOf('one two'));
  }
});

test('the disk forgets what was not synced, so that these tests can fail', async () => {
  const files = new ForgetfulFiles();
  const file = await files.open('/state/unsynced', 'wx');
  await file.writeFile(bytesOf('x'));
  files.cutPower();
  await expect(files.readFile('/state/unsynced')).rejects.toThrow('ENOENT');
});
