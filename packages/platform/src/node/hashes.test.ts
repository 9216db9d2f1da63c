import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { nodeHashes } from './hashes.ts';

const mebibyte = 1024 * 1024;
const content = Buffer.alloc(5 * mebibyte + 17);
for (let at = 0; at < content.length; at += 1) content[at] = (at * 7919) >> 5;
const sha256 = createHash('sha256').update(content).digest('hex');

const own = (bytes: number): Uint8Array => new Uint8Array(bytes);
const shared = (bytes: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(bytes));

test.for([
  ['own', own, 64 * 1024],
  ['own', own, 3 * mebibyte],
  ['shared', shared, 1_000],
  ['shared', shared, 3 * mebibyte],
] as const)(
  'the hash of %s memory runs in a thread, and the memory can be used again',
  async ([, make, bytes]) => {
    const hash = nodeHashes(0).start(content.length);
    const piece = make(bytes);
    for (let at = 0; at < content.length; at += bytes) {
      const part = content.subarray(at, at + bytes);
      piece.set(part);
      await hash.update(piece.subarray(0, part.length));
      piece.fill(0xee);
    }
    expect(await hash.digest()).toBe(sha256);
    hash.close();
  },
);

test('pieces that do not wait for one another are hashed in their order', async () => {
  const hash = nodeHashes(0).start(content.length);
  const pieces = Array.from({ length: 9 }, (_, index) => shared(index + 1).fill(index));
  await Promise.all(pieces.map((piece) => hash.update(piece)));
  const wanted = createHash('sha256').update(Buffer.concat(pieces)).digest('hex');
  expect(await hash.digest()).toBe(wanted);
  hash.close();
});

test('empty and small content is hashed in the calling thread', async () => {
  for (const hash of [nodeHashes(0).start(0), nodeHashes().start(0)]) {
    expect(await hash.digest()).toBe(createHash('sha256').digest('hex'));
    hash.close();
  }
});

test('a hash that was closed gives no digest, and makes room for another thread', async () => {
  const hashes = nodeHashes(0);
  for (let count = 0; count < 6; count += 1) {
    const hash = hashes.start(content.length);
    await hash.update(content);
    const late = hash.update(content);
    hash.close();
    hash.close();
    await expect(late).rejects.toThrow('the thread that hashes has ended');
    await expect(hash.digest()).rejects.toThrow('the thread that hashes has ended');
  }
});

test('input to a failed hash causes no unhandled rejection', async () => {
  const unheard: unknown[] = [];
  const hear = (error: unknown): void => void unheard.push(error);
  process.on('unhandledRejection', hear);
  try {
    const hash = nodeHashes(0).start(content.length);
    void hash.update(content);
    hash.close();
    void hash.update(content);
    await new Promise((resolve) => setTimeout(resolve, 0));
    await expect(hash.digest()).rejects.toThrow('the thread that hashes has ended');
    expect(unheard).toEqual([]);
  } finally {
    process.off('unhandledRejection', hear);
  }
});

test('a hash beyond the limit of threads is right too', async () => {
  const hashes = nodeHashes(0);
  const many = Array.from({ length: 6 }, () => hashes.start(content.length));
  await Promise.all(many.map((hash) => hash.update(content)));
  expect(await Promise.all(many.map((hash) => hash.digest()))).toEqual(many.map(() => sha256));
  for (const hash of many) hash.close();
});

test('a bundled program runs its hash threads, and ends although one hash is open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-hashes-'));
  try {
    const contents = `import { nodeHashes } from './hashes.ts';
      const [open, hash] = [nodeHashes(0).start(1), nodeHashes(0).start(3)];
      await open.update(Buffer.from('a'));
      await hash.update(Buffer.from('abc'));
      console.log(await hash.digest());`;
    const built = await build({
      stdin: { contents, resolveDir: import.meta.dirname, loader: 'ts' },
      ...{ bundle: true, platform: 'node', format: 'esm', target: 'node24', write: false },
    });
    const file = join(folder, 'program.mjs');
    writeFileSync(file, built.outputFiles[0]?.contents ?? '');
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout.trim()).toBe(createHash('sha256').update('abc').digest('hex'));
  } finally {
    await rm(folder, { recursive: true });
  }
});
