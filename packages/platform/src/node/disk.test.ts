import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeDisk } from './disk.ts';

const disk = nodeDisk();
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'disk-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

test('a read of a missing path answers undefined', async () => {
  expect(await disk.read(join(folder, 'no'))).toBeUndefined();
  expect(await disk.stat(join(folder, 'no', 'deeper'))).toBeUndefined();
});

test('the disk reads back what was written, with the mode asked for', async () => {
  const path = join(folder, 'key');
  await disk.writeAtomic(path, bytesOf('one'), 0o600);
  await disk.writeAtomic(path, bytesOf('second'), 0o666);
  expect(await disk.read(path)).toEqual(bytesOf('second'));
  expect(await disk.stat(path)).toMatchObject({ sizeBytes: 6, mode: 0o666, isOurs: true });
});

test('the disk looks once for all who ask at once, and a later look sees a change', async () => {
  const path = join(folder, 'kernel');
  writeFileSync(path, 'old');
  const first = disk.stat(path);
  expect(disk.stat(path)).toBe(first);
  writeFileSync(path, 'newer');
  expect(await first).toMatchObject({ sizeBytes: 5 });
  writeFileSync(path, 'newest');
  expect(await disk.stat(path)).toMatchObject({ sizeBytes: 6 });
});

test('the disk tells files of other users apart', async () => {
  const path = join(folder, 'key');
  await disk.writeAtomic(path, bytesOf('one'), 0o600);
  // Only root can give files away.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) chownSync(path, 12_345, 12_345);
  expect((await disk.stat(path))?.isOurs).toBe(!isRoot);
});

test('the disk replaces what a crash left behind, whatever its mode', async () => {
  const path = join(folder, 'key');
  writeFileSync(`${path}.tmp`, 'torn');
  chmodSync(`${path}.tmp`, 0o400);
  await disk.writeAtomic(path, bytesOf('whole'), 0o600);
  expect(readFileSync(path, 'utf8')).toBe('whole');
  expect(existsSync(`${path}.tmp`)).toBe(false);
});

test('the last of many concurrent writes to one path stays', async () => {
  const path = join(folder, 'key');
  const texts = Array.from({ length: 20 }, (_, index) => `value ${index}`);
  await Promise.all(texts.map((text) => disk.writeAtomic(path, bytesOf(text), 0o600)));
  expect(readFileSync(path, 'utf8')).toBe('value 19');
});

test('the disk rejects a write into a folder that does not exist, and takes the next', async () => {
  const path = join(folder, 'later', 'key');
  await expect(disk.writeAtomic(path, bytesOf('x'), 0o600)).rejects.toThrow('ENOENT');
  await disk.makeFolder(join(folder, 'later'), 0o700);
  await disk.writeAtomic(path, bytesOf('x'), 0o600);
  expect(readFileSync(path, 'utf8')).toBe('x');
});

test('a reader sees the old or the new contents, never a mixture, across kill -9', async () => {
  const path = join(folder, 'key');
  const program = `
    import { nodeDisk } from ${JSON.stringify(new URL('./disk.ts', import.meta.url).href)};
    const disk = nodeDisk();
    for (let round = 0; ; round += 1) {
      const contents = new Uint8Array(65536).fill(round % 256);
      await disk.writeAtomic(${JSON.stringify(path)}, contents, 0o600);
      if (round === 3) process.stdout.write('going');
    }`;
  for (const delayMs of [1, 7, 13]) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program]);
    await once(child.stdout, 'data');
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    child.kill('SIGKILL');
    await once(child, 'exit');
    const contents = readFileSync(path);
    expect(contents).toHaveLength(65536);
    expect(new Set(contents).size).toBe(1);
  }
});

test('the disk appends in the order of the calls and keeps what was there', async () => {
  const path = join(folder, 'journal');
  const first = await disk.openAppend(path);
  await Promise.all(['a', 'b', 'c'].map((text) => first.append(bytesOf(text))));
  await first.close();
  const second = await disk.openAppend(path);
  await second.append(bytesOf('d'));
  await second.close();
  expect(readFileSync(path, 'utf8')).toBe('abcd');
  expect(await disk.stat(path)).toMatchObject({ sizeBytes: 4, mode: 0o600, isOurs: true });
});

test('an append is refused after close, and after an append that failed', async () => {
  const closed = await disk.openAppend(join(folder, 'journal'));
  await closed.close();
  await expect(closed.append(bytesOf('x'))).rejects.toThrow('closed');

  const full = await disk.openAppend('/dev/full');
  await expect(full.append(bytesOf('x'))).rejects.toThrow('ENOSPC');
  await expect(full.append(bytesOf('x'))).rejects.toThrow('an earlier append failed');
  await full.close();
});

test('the disk makes nested folders with their mode and takes existing ones', async () => {
  const deep = join(folder, 'a', 'b', 'c');
  await disk.makeFolder(deep, 0o700);
  await disk.makeFolder(deep, 0o755);
  expect((await disk.stat(join(folder, 'a')))?.mode).toBe(0o700);
  expect((await disk.stat(deep))?.mode).toBe(0o700);
});

test('the disk removes a file, and takes one that is not there', async () => {
  const path = join(folder, 'key');
  await disk.writeAtomic(path, bytesOf('x'), 0o600);
  await disk.remove(path);
  await disk.remove(path);
  expect(await disk.read(path)).toBeUndefined();
});
