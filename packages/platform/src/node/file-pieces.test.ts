import {
  appendFile,
  mkdtemp,
  readdir,
  readlink,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FilePieces, type OpenFile } from './file-pieces.ts';
import { versionOf } from './file-version.ts';

let folder: string;
let pieces: FilePieces;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-pieces-'));
  pieces = new FilePieces({ keptBytesMax: 1_000, keptMs: 60_000 });
});

afterEach(async () => {
  pieces.close();
  await rm(folder, { recursive: true });
});

async function write(name: string, text: string) {
  const path = join(folder, name);
  await writeFile(path, text);
  return { path, version: versionOf(await stat(path, { bigint: true })) };
}

/** The whole of it, from `at` on, as a reader gets it. */
async function rest(file: OpenFile, at = 0): Promise<string> {
  const piece = await file.piece(at, 1_000_000);
  const text = Buffer.from(piece.bytes).toString();
  piece.done();
  return text;
}

async function read(path: string, version?: string): Promise<string> {
  const file = await pieces.open(path, version);
  try {
    return await rest(file);
  } finally {
    await file.close();
  }
}

async function timesOpen(path: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd');
  const targets = descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => ''));
  return (await Promise.all(targets)).filter((target) => target === path).length;
}

test('a file that is kept is read once: it may even be gone', async () => {
  const { path, version } = await write('kernel', 'abcdef');
  expect(await read(path, version)).toBe('abcdef');
  await rm(path);
  const again = await pieces.open(path, version);
  expect([await rest(again), await rest(again, 4)]).toEqual(['abcdef', 'ef']);
  await again.close();
  await expect(read(path)).rejects.toThrow('ENOENT');
});

test('bytes of a kept file are lent once all of them are in memory, across pieces', async () => {
  const sizeBytes = 9 * 1024 * 1024;
  const border = 8 * 1024 * 1024;
  pieces = new FilePieces({ keptBytesMax: sizeBytes, keptMs: 60_000 });
  const { path } = await write('kernel', 'x'.repeat(border - 2));
  await appendFile(path, 'abcdef');
  await truncate(path, sizeBytes);
  const version = versionOf(await stat(path, { bigint: true }));
  expect(pieces.lend(path, version, 0, 1)).toBeUndefined();
  const file = await pieces.open(path, version);
  await rest(file);
  expect(pieces.lend(path, version, border - 2, border + 4)).toBeUndefined();
  await rest(file, border);
  await file.close();
  const lent = pieces.lend(path, version, border - 2, border + 4);
  expect(lent?.pieces.map((piece) => Buffer.from(piece).toString())).toEqual(['ab', 'cdef']);
  expect(pieces.lend(path, version, border, sizeBytes + 1)).toBeUndefined();
  expect(pieces.lend(path, 'another', border, sizeBytes)).toBeUndefined();
});

test('bytes that are lent stay, and make room once they are given back', async () => {
  const one = await write('one', 'x'.repeat(600));
  const two = await write('two', 'y'.repeat(600));
  await read(one.path, one.version);
  const lent = pieces.lend(one.path, one.version, 0, 600);
  await read(two.path, two.version);
  expect(pieces.lend(two.path, two.version, 0, 600)).toBeUndefined();
  lent?.giveBack();
  await read(two.path, two.version);
  expect(pieces.lend(two.path, two.version, 0, 600)).toBeDefined();
  expect(pieces.keptBytes).toBe(600);
});

test('another version of a file is read again, and the old one is not kept beside it', async () => {
  const old = await write('kernel', 'old');
  await read(old.path, old.version);
  const now = await write('kernel', 'newer');
  expect(await read(now.path, now.version)).toBe('newer');
  expect(pieces.keptBytes).toBe(5);
});

test('a piece of another version than asked for is sent and not kept', async () => {
  const { path } = await write('kernel', 'abc');
  expect(await read(path, 'another')).toBe('abc');
  expect(await read(path)).toBe('abc');
  expect(pieces.keptBytes).toBe(0);
});

test('a file that changes while it is read is not kept, and nobody gets a mixture', async () => {
  const { path, version } = await write('kernel', 'abc');
  const file = await pieces.open(path, version);
  await utimes(path, 1, 1);
  await expect(file.piece(0, 3)).rejects.toThrow('changes while it is read');
  await file.close();
  expect(pieces.keptBytes).toBe(0);
});

test('kept pieces stay within the limit, and pieces that are being sent stay', async () => {
  const [one, two, large] = [
    await write('one', 'x'.repeat(600)),
    await write('two', 'y'.repeat(600)),
    await write('large', 'z'.repeat(1_001)),
  ];
  const held = await pieces.open(one.path, one.version);
  await rest(held);
  expect(await read(two.path, two.version)).toHaveLength(600);
  expect(await read(large.path, large.version)).toHaveLength(1_001);
  expect(pieces.keptBytes).toBe(600);
  await rm(one.path);
  expect(await rest(held)).toHaveLength(600);
  await held.close();
  await read(two.path, two.version);
  expect(pieces.keptBytes).toBe(600);
  await expect(read(one.path, one.version)).rejects.toThrow('ENOENT');
});

test('requests at once for a file that is not kept yet read it once', async () => {
  const { path, version } = await write('kernel', 'abc');
  const files = await Promise.all([1, 2, 3].map(() => pieces.open(path, version)));
  expect(await Promise.all(files.map((file) => rest(file)))).toEqual(['abc', 'abc', 'abc']);
  await Promise.all(files.map((file) => file.close()));
  expect(pieces.keptBytes).toBe(3);
  expect(await timesOpen(path)).toBe(0);
});

test('the memory of an unused piece is given back', async () => {
  pieces = new FilePieces({ keptBytesMax: 1_000, keptMs: 20 });
  const { path, version } = await write('kernel', 'abc');
  await read(path, version);
  await expect.poll(() => pieces.keptBytes, { timeout: 60_000 }).toBe(0);
});

test('memory of a piece that is not kept is used again only when its reader has done', async () => {
  const { path } = await write('blob', 'abcdef');
  const file = await pieces.open(path, undefined);
  const first = await file.piece(0, 3);
  const second = await file.piece(3, 3);
  expect(first.bytes.buffer).not.toBe(second.bytes.buffer);
  first.done();
  const third = await file.piece(0, 2);
  expect(third.bytes.buffer).toBe(first.bytes.buffer);
  expect(Buffer.from(second.bytes).toString()).toBe('def');
  await file.close();
});
